//! What is to be kept in step ([`Config`], from `catchword.toml`) and where it lives ([`Environment`], from the
//! process's environment). A file that is wrong is refused at start with its line and what to write instead: a typing
//! error that only showed at the first reindex would show at the worst moment.

mod canary;
mod collection;
mod worker;

mod environment;

mod database_url;
mod elasticsearch;
mod host;
mod login;
mod secret;
mod variable;

mod error;
mod names;
mod near;
mod section;
mod tick;

#[cfg(test)]
mod scratch;

use std::fs;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

pub use canary::CANARY;
pub use collection::{Collection, DIRECT_DELAY, Touch};
pub use database_url::DatabaseUrl;
pub use elasticsearch::ElasticsearchSettings;
pub use environment::{Environment, Tls};
pub use error::Error;
pub use secret::Secret;
pub use worker::Worker;

pub(crate) use names::FLAGS;

use error::Fault;
use section::{Key, Section, Source};

/// The content of `catchword.toml`, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Where it was read from.
    pub file: PathBuf,
    /// How the worker runs.
    pub worker: Worker,
    /// At least one; names, indexes, pairs of table and view, and of table and revision are distinct.
    pub collections: Vec<Collection>,
}

impl Config {
    /// Reads and checks the file, and that each collection's mapping is a JSON object.
    pub fn read(path: &Path) -> Result<Config, Error> {
        let text = fs::read_to_string(path).map_err(|cause| Error::Unreadable { file: path.to_owned(), cause })?;
        let config = Config::parse(&text, path)?;
        for collection in &config.collections {
            collection.mapping_json()?;
        }
        Ok(config)
    }

    /// Checks a text as if it stood in `file`. Opens nothing: mappings are not looked at.
    pub fn parse(text: &str, file: &Path) -> Result<Config, Error> {
        let source = Source { file, text };
        let document = DeTable::parse(text).map_err(|error| source.not_toml(&error))?;
        let top = Section::new(source, String::new(), document.get_ref(), 0, KEYS)?;
        Ok(Config { file: file.to_owned(), worker: worker::read(&top)?, collections: collections(&top)? })
    }

    /// The collections, and the canary if it is on: what a worker serves and `migrate` makes.
    pub fn served(&self) -> impl Iterator<Item = &Collection> {
        let canary = self.worker.canary.then(|| &*canary::COLLECTION);
        self.collections.iter().chain(canary)
    }

    /// The collection of that name; without a name, the only one.
    pub fn collection(&self, name: Option<&str>) -> Result<&Collection, Error> {
        let known = || near::listed(self.collections.iter().map(|known| known.name.as_str()));
        match (name, self.collections.as_slice()) {
            (None, [only]) => Ok(only),
            (None, _) => Err(Error::NameOne { known: known() }),
            (Some(CANARY), _) if self.worker.canary => Ok(&canary::COLLECTION),
            (Some(name), all) => all.iter().find(|known| known.name == name).ok_or_else(|| Error::NoSuchCollection {
                file: self.file.clone(),
                name: name.to_owned(),
                known: known(),
            }),
        }
    }
}

const KEYS: &[Key] = &[Key { name: "worker", example: "[worker]" }, Key { name: "collection", example: "[[collection]]" }];

fn collections(top: &Section) -> Result<Vec<Collection>, Error> {
    let mut collections: Vec<Collection> = Vec::new();
    for (nth, (at, table)) in tables(top)?.into_iter().enumerate() {
        let section = collection::section(top.source, nth, at, table)?;
        let collection = collection::read(&section)?;
        let own_index = [collection.index.as_str(), CANARY].into_iter().find(|index| collection.search_alias.as_deref() == Some(index));
        if let Some(index) = own_index {
            return Err(section.refuse("search_alias", at, search_alias_is_index(index)));
        }
        for earlier in &collections {
            distinct(earlier, &collection).map_err(|(key, fault)| section.refuse(key, at, fault))?;
        }
        collections.push(collection);
    }
    if collections.is_empty() {
        return Err(top.missing("collection"));
    }
    Ok(collections)
}

fn tables<'a>(top: &Section<'a>) -> Result<Vec<(usize, &'a DeTable<'a>)>, Error> {
    let Some(list) = top.list("collection")? else {
        return Ok(Vec::new());
    };
    list.iter()
        .map(|entry| match entry.get_ref() {
            DeValue::Table(table) => Ok((entry.span().start, table)),
            _ => Err(top.wrong_type("collection", entry)),
        })
        .collect()
}

/// Jobs are told apart by the collection's name and documents by the index: sharing either would mix two truths. The
/// same view of the same table twice is a copy that was not edited. On one table each collection counts its own numbers: with one column
/// for two, a change that only one of them watches would make the other's documents stale without a job.
fn distinct(earlier: &Collection, this: &Collection) -> Result<(), (&'static str, Fault)> {
    let (key, problem) = if earlier.name == this.name {
        ("name", "is the name of an earlier collection too".to_owned())
    } else if earlier.index == this.index {
        ("index", format!("is {:?}, which collection {:?} writes to", this.index, earlier.name))
    } else if earlier.search_alias.as_ref() == Some(&this.index) {
        return Err((
            "index",
            Fault::new(format!("is {:?}, the search_alias of collection {:?}", this.index, earlier.name), "choose another"),
        ));
    } else if this.search_alias.as_ref() == Some(&earlier.index) {
        return Err(("search_alias", search_alias_is_index(&earlier.index)));
    } else if (&earlier.table, &earlier.view) == (&this.table, &this.view) {
        ("view", format!("and table are those of collection {:?}", earlier.name))
    } else if (&earlier.table, &earlier.revision) == (&this.table, &this.revision) {
        let remedy =
            format!("write revision = \"catchword_revision_{}\", a column of its own, and let its view select that one", this.name);
        let problem = format!("is {:?}, which is that of collection {:?} on the same table", this.revision, earlier.name);
        return Err(("revision", Fault::new(problem, remedy)));
    } else {
        return Ok(());
    };
    Err((key, Fault::new(problem, "give each collection its own")))
}

/// An alias over several collections cannot be the alias of one: that one must lead to one index.
fn search_alias_is_index(index: &str) -> Fault {
    Fault::new(format!("is {index:?}, which a collection has as its index"), "choose a name that is no collection's index")
}

#[cfg(test)]
mod tests;
