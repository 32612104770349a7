use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use toml::de::{DeTable, DeValue};

use super::canary::{self, CANARY};
use super::error::{Error, Fault};
use super::names;
use super::section::{Key, Section, Source};

/// A table, the view that makes its documents, and the index they live in. Columns are as Postgres has them, unquoted; tables and views
/// as they were written.
#[derive(Debug, Clone, PartialEq)]
pub struct Collection {
    /// What jobs, metrics and commands call it.
    pub name: String,
    /// The attached table, perhaps with its schema.
    pub table: String,
    /// The table's columns that together name a row and its document: one, as a rule.
    pub key: Vec<String>,
    /// Returns `(key, revision, body)`, perhaps with its schema. A key of several columns has these instead of `key`.
    pub view: String,
    /// A JSON file of settings and mappings, found from the configuration's own folder.
    pub mapping: PathBuf,
    /// The readers' alias, without the installation's prefix; the name unless it was given.
    pub index: String,
    /// An alias that readers search over all collections that name it, without the installation's prefix.
    pub search_alias: Option<String>,
    /// The column that the trigger keeps the revision in.
    pub revision: String,
    /// Flags of `reindex`, and the table's columns that they compare.
    pub scopes: BTreeMap<String, String>,
    /// The column of time that `reindex --between` reads.
    pub period: Option<String>,
    /// Related tables whose changes change documents.
    pub touches: Vec<Touch>,
    /// Tables that the view reads and that are not watched on purpose.
    pub unwatched: Vec<String>,
    /// Columns that matter; empty means all.
    pub watch: Vec<String>,
    /// How long a live job waits, so that the direct path may come first: whole seconds, an hour at most. None: not at all, but for
    /// [`DIRECT_DELAY`] in the transactions of `store_and_schedule`.
    pub delay: Option<Duration>,
    /// The column that names the tenant of a row, so that one tenant's flood does not stand before others' writes.
    pub fair_by: Option<String>,
    /// The largest share of a batch that one tenant may have while others have work: above 0, at most 1.
    pub fair_share: f64,
}

/// A change of `table` changes the documents of the rows whose `row_column` has the changed row's `column`. Instead of a column a value may
/// be an expression, and the rows may be found by a query. An array stands for each of its elements.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Touch {
    /// The related table, perhaps with its schema. It may be the collection's own.
    pub table: String,
    /// A column of the related table, or several that refer together. None: there is a `value`.
    pub column: Vec<String>,
    /// An expression over a row of the related table.
    pub value: Option<String>,
    /// As many columns of the collection's own table. None: there are `keys`.
    pub row_column: Vec<String>,
    /// A query that returns the keys of rows which refer to the values `$1`.
    pub keys: Option<String>,
    /// Columns of the related table that matter; empty means all. An update that changes none of them touches nothing.
    pub watch: Vec<String>,
}

impl Collection {
    /// The schemas that a table is in, where it is in many: `tenant_*` of `tenant_*.note`.
    pub fn schemas(&self) -> Option<&str> {
        let (schema, _) = self.table.split_once('.')?;
        schema.contains('*').then_some(schema)
    }

    /// What `reindex` takes as flags: its scopes, and the schema where it has many.
    pub fn flags(&self) -> Vec<&str> {
        self.scopes.keys().map(String::as_str).chain(self.schemas().map(|_| SCHEMA)).collect()
    }

    /// Reads the file of settings and mappings now: a JSON object. What it may hold is judged where indexes are made.
    pub fn mapping_json(&self) -> Result<Value, Error> {
        let built_in = self.name == CANARY;
        let refuse = |problem: String| Error::Mapping { collection: self.name.clone(), mapping: self.mapping.clone(), problem };
        let read = if built_in { Ok(canary::MAPPING.to_owned()) } else { fs::read_to_string(&self.mapping) };
        let text = read.map_err(|cause| refuse(format!("cannot be read: {cause}; the path counts from the configuration's folder")))?;
        let wanted = r#"write {"settings": {…}, "mappings": {…}}"#;
        match serde_json::from_str(&text) {
            Ok(object @ Value::Object(_)) => Ok(object),
            Ok(_) => Err(refuse(format!("is not a JSON object; {wanted}"))),
            Err(cause) => Err(refuse(format!("is not JSON: {cause}; {wanted}"))),
        }
    }
}

/// The flag of `reindex` that names one of many schemas.
const SCHEMA: &str = "schema";

/// The trigger takes no delay above an hour either: nobody waits longer for a direct write.
const LONGEST_DELAY: Duration = Duration::from_secs(3600);

/// How long a job waits whose direct write comes right after the commit. That takes a second at most; a minute later nearly every look sees
/// both sides agree.
pub const DIRECT_DELAY: Duration = Duration::from_secs(60);

const KEYS: &[Key] = &[
    Key { name: "name", example: r#"name = "annotation""# },
    Key { name: "table", example: r#"table = "annotation""# },
    Key { name: "key", example: r#"key = "id""# },
    Key { name: "view", example: r#"view = "annotation_document""# },
    Key { name: "mapping", example: r#"mapping = "annotation.json""# },
    Key { name: "index", example: r#"index = "annotation""# },
    Key { name: "search_alias", example: r#"search_alias = "everything""# },
    Key { name: "revision", example: r#"revision = "catchword_revision""# },
    Key { name: "scopes", example: r#"scopes = { user = "userid" }"# },
    Key { name: "period", example: r#"period = "updated""# },
    Key { name: "touches", example: r#"touches = [{ table = "document", column = "id", row_column = "document_id", watch = ["title"] }]"# },
    Key { name: "unwatched", example: r#"unwatched = ["country"]"# },
    Key { name: "watch", example: r#"watch = ["text", "tags"]"# },
    Key { name: "delay", example: r#"delay = "60s""# },
    Key { name: "fair_by", example: r#"fair_by = "userid""# },
    Key { name: "fair_share", example: "fair_share = 0.5" },
];

const TOUCH_KEYS: &[Key] = &[
    Key { name: "table", example: r#"table = "document""# },
    Key { name: "column", example: r#"column = "id""# },
    Key { name: "value", example: r#"value = "'acct:' || username || '@' || authority""# },
    Key { name: "row_column", example: r#"row_column = "document_id""# },
    Key { name: "keys", example: r#"keys = 'select post_id from post_tag where tag_id = any($1)'"# },
    Key { name: "watch", example: r#"watch = ["title", "web_uri"]"# },
];

/// The section is called by the collection's name, as soon as it has one.
pub(super) fn section<'a>(source: Source<'a>, nth: usize, at: usize, table: &'a DeTable<'a>) -> Result<Section<'a>, Error> {
    let title = match table.get("name").and_then(|name| name.get_ref().as_str()) {
        Some(name) => format!("collection {name:?}"),
        None => format!("collection {}", nth + 1),
    };
    Section::new(source, title, table, at, KEYS)
}

pub(super) fn read(section: &Section) -> Result<Collection, Error> {
    let name = section.required_text("name", names::collection)?;
    let fair_share = section.share("fair_share")?;
    let folder = section.source.file.parent().unwrap_or(Path::new(""));
    let collection = Collection {
        table: section.required_text("table", names::relation)?,
        key: key(section)?,
        view: section.required_text("view", names::relation)?,
        mapping: folder.join(section.required_text("mapping", path)?),
        index: section.text("index", names::index)?.unwrap_or_else(|| name.clone()),
        search_alias: section.text("search_alias", names::index)?,
        revision: section.text("revision", names::column)?.map_or_else(|| "catchword_revision".to_owned(), |name| names::as_in_sql(&name)),
        scopes: scopes(section)?,
        period: section.text("period", names::column)?.map(|name| names::as_in_sql(&name)),
        touches: touches(section)?,
        unwatched: unwatched(section)?,
        watch: watch(section)?,
        delay: section.parsed("delay", delay)?,
        fair_by: section.text("fair_by", names::column)?.map(|name| names::as_in_sql(&name)),
        fair_share: fair_share.unwrap_or(1.0),
        name,
    };
    check_schemas(section, &collection)?;
    if collection.fair_by.is_none() && fair_share.is_some() {
        let fault =
            Fault::new("says nothing without fair_by", r#"write fair_by = "userid" too, with the column that names a row's tenant"#);
        return Err(section.refuse("fair_share", section.at("fair_share"), fault));
    }
    Ok(collection)
}

/// Many schemas are written in the same way wherever a table or view of theirs is named.
fn check_schemas(section: &Section, collection: &Collection) -> Result<(), Error> {
    let refuse = |key: &str, problem: String, remedy: String| Err(section.refuse(key, section.at(key), Fault::new(problem, remedy)));
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_*".contains(c);
    let touched = collection.touches.iter().map(|touch| ("touches", &touch.table));
    let unwatched = collection.unwatched.iter().map(|table| ("unwatched", table));
    let mut others = [("view", &collection.view)].into_iter().chain(touched).chain(unwatched);
    let Some(schemas) = collection.schemas() else {
        let starred = [("table", &collection.table)].into_iter().chain(others).find(|(_, name)| name.contains('*') && !name.contains('"'));
        return match starred {
            Some((key, name)) => refuse(
                key,
                format!("is {name:?}, and a * stands for many schemas"),
                "write table = \"tenant_*.note\" and view = \"tenant_*.note_document\"".into(),
            ),
            None => Ok(()),
        };
    };
    if !schemas.chars().all(plain) || schemas == "*" {
        let remedy = "write what their names have in common, in small letters, digits and _, and * for the rest: tenant_*";
        return refuse("table", format!("is {:?}", collection.table), remedy.into());
    }
    if collection.scopes.contains_key(SCHEMA) {
        return refuse("scopes", "has a scope schema, which means the schema here".into(), "choose another name".into());
    }
    let starts = format!("{schemas}.");
    if !collection.view.starts_with(&starts) {
        return refuse(
            "view",
            format!("is {:?}, and each schema has a view of its own", collection.view),
            format!("write view = \"{starts}{}\"", collection.view.rsplit('.').next().unwrap_or("view")),
        );
    }
    match others.find(|(_, name)| name.contains('*') && !name.contains('"') && !name.starts_with(&starts)) {
        Some((key, name)) => refuse(
            key,
            format!("has {name:?}, and the schemas of the table are {schemas}"),
            format!("write {starts}… for a table in each of them, or schema.table for one that they share"),
        ),
        None => Ok(()),
    }
}

fn key(section: &Section) -> Result<Vec<String>, Error> {
    let key = columns(section, "key")?;
    if key.is_empty() { Err(section.missing("key")) } else { Ok(key) }
}

/// One column, or a list of them.
fn columns(section: &Section, key: &str) -> Result<Vec<String>, Error> {
    Ok(section.one_or_more(key, names::column)?.iter().map(|name| names::as_in_sql(name)).collect())
}

fn scopes(section: &Section) -> Result<BTreeMap<String, String>, Error> {
    let Some((_, table)) = section.table("scopes")? else {
        return Ok(BTreeMap::new());
    };
    table
        .iter()
        .map(|(scope, column)| {
            let key = format!("scopes.{}", scope.get_ref());
            names::scope(scope.get_ref()).map_err(|fault| section.refuse(&key, scope.span().start, fault))?;
            let column = section.text_of(&key, column, names::column)?;
            Ok((scope.get_ref().to_string(), names::as_in_sql(&column)))
        })
        .collect()
}

fn touches(section: &Section) -> Result<Vec<Touch>, Error> {
    let list = section.list("touches")?.unwrap_or_default();
    let mut touches = Vec::new();
    for (nth, entry) in list.iter().enumerate() {
        let DeValue::Table(table) = entry.get_ref() else {
            return Err(section.wrong_type("touches", entry));
        };
        let title = format!("{}: touch {}", section.title(), nth + 1);
        let entry = Section::new(section.source, title, table, entry.span().start, TOUCH_KEYS)?;
        touches.push(touch(&entry)?);
    }
    Ok(touches)
}

fn touch(entry: &Section) -> Result<Touch, Error> {
    let touch = Touch {
        table: entry.required_text("table", names::relation)?,
        column: columns(entry, "column")?,
        value: entry.text("value", sql)?,
        row_column: columns(entry, "row_column")?,
        keys: entry.text("keys", sql)?,
        watch: watch(entry)?,
    };
    let both = |one: &str, other: &str, remedy: &str| {
        let fault = Fault::new(format!("stands beside {other}, and one of them is enough"), remedy);
        Err(entry.refuse(one, entry.at(one), fault))
    };
    match (touch.column.is_empty(), &touch.value) {
        (true, None) => return Err(entry.missing("column")),
        (false, Some(_)) => return both("value", "column", "write a column of the related table, or an expression over its row"),
        _ => {}
    }
    match (touch.row_column.is_empty(), &touch.keys) {
        (true, None) => Err(entry.missing("row_column")),
        (false, Some(_)) => both("keys", "row_column", "write a column of the collection's table, or a query that finds the keys"),
        (false, None) if touch.row_column.len() != touch.column.len().max(1) => {
            let problem = format!("names {}, and column {}", touch.row_column.len(), touch.column.len().max(1));
            let fault = Fault::new(problem, "name as many on one side as on the other, in the same order");
            Err(entry.refuse("row_column", entry.at("row_column"), fault))
        }
        _ => Ok(touch),
    }
}

fn unwatched(section: &Section) -> Result<Vec<String>, Error> {
    let list = section.list("unwatched")?.unwrap_or_default();
    list.iter().map(|table| section.text_of("unwatched", table, names::relation)).collect()
}

fn watch(section: &Section) -> Result<Vec<String>, Error> {
    let list = section.list("watch")?.unwrap_or_default();
    list.iter().map(|column| Ok(names::as_in_sql(&section.text_of("watch", column, names::column)?))).collect()
}

/// What it means, Postgres judges.
fn sql(text: &str) -> Result<(), Fault> {
    if text.trim().is_empty() || text.contains('\0') {
        return Err(Fault::new("is empty", "write SQL, or leave it out"));
    }
    Ok(())
}

fn path(path: &str) -> Result<(), Fault> {
    if path.is_empty() || path.contains('\0') {
        return Err(Fault::new("is not a path", r#"write mapping = "annotation.json""#));
    }
    Ok(())
}

fn delay(text: &str) -> Result<Duration, Fault> {
    let wrong = |problem: &str| Fault::new(problem, r#"write whole seconds up to an hour, as in "60s""#);
    let delay = humantime::parse_duration(text).map_err(|_| wrong("is not a time span"))?;
    if delay.subsec_nanos() != 0 {
        return Err(wrong("is not in whole seconds"));
    }
    if delay > LONGEST_DELAY {
        return Err(wrong("is longer than an hour"));
    }
    Ok(delay)
}
