//! Reads collections back from where they were attached.

use std::collections::BTreeMap;

use serde_json::Value;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use uuid::Uuid;

use super::copy::copy;
use super::member::Member;
use super::statements::Statements;
use super::{Collection, KeyType, attach};
use crate::Error;
use crate::config;
use crate::database::Question;
use crate::elastic::Target;

/// The collection as it is attached now. A configured one that is not attached is refused.
pub async fn load(connection: &mut PgConnection, config: &config::Collection, prefix: &str) -> Result<Collection, Error> {
    let rows = bind(sqlx::query(include_str!("load.sql")), [config]).fetch_all(connection).await?;
    read(&rows, config, prefix)
}

/// Collections as they are attached now, and why others cannot be served.
#[derive(Debug, Default)]
pub struct Found {
    pub collections: Vec<Collection>,
    pub refused: BTreeMap<String, Error>,
    /// Is a rebuild of any of them not over yet?
    pub rebuilding: bool,
    /// Those that are broken now and were not before, or the other way round.
    pub broken: BTreeMap<String, bool>,
    /// Those whose partitions are others than when they were last looked at.
    pub repartitioned: Vec<String>,
}

impl Found {
    /// All of these, in one statement.
    pub async fn load<'c>(
        connection: &mut PgConnection,
        configs: impl IntoIterator<Item = &'c config::Collection> + Clone,
        prefix: &str,
    ) -> Result<Found, Error> {
        let rows = bind(sqlx::query(include_str!("load.sql")), configs.clone()).fetch_all(connection).await?;
        Found::read(&rows, configs, prefix)
    }

    /// What `catchword.attached` returned of them.
    pub fn read<'c>(rows: &[PgRow], configs: impl IntoIterator<Item = &'c config::Collection>, prefix: &str) -> Result<Found, Error> {
        let rebuilding = rows.iter().any(|row| row.try_get("rebuilding").unwrap_or(false));
        let mut found = Found { rebuilding, broken: broken(rows)?, repartitioned: repartitioned(rows)?, ..Found::default() };
        for config in configs {
            match read(rows, config, prefix).and_then(Collection::check) {
                Ok(collection) => found.collections.push(collection),
                Err(refused @ Error::Refused { .. }) => _ = found.refused.insert(config.name.clone(), refused),
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }
}

/// Which of them are broken now and were not before, or the other way round.
fn broken(rows: &[PgRow]) -> Result<BTreeMap<String, bool>, Error> {
    let mut changed = BTreeMap::new();
    for row in rows {
        let (name, problems): (Option<String>, Option<Vec<String>>) = (row.try_get("name")?, row.try_get("problems")?);
        let members: Value = row.try_get("members")?;
        let of_a_member = members.as_array().into_iter().flatten().any(|member| member["problem"].is_string());
        let (is, was) = (
            of_a_member || problems.is_some_and(|problems| !problems.is_empty()),
            row.try_get::<Option<bool>, _>("was_broken")? == Some(true),
        );
        changed.extend(name.filter(|_| is != was).map(|name| (name, is)));
    }
    Ok(changed)
}

fn repartitioned(rows: &[PgRow]) -> Result<Vec<String>, Error> {
    let mut names = Vec::new();
    for row in rows {
        let (name, changed): (Option<String>, Option<bool>) = (row.try_get("name")?, row.try_get("repartitioned")?);
        names.extend(name.filter(|_| changed == Some(true)));
    }
    Ok(names)
}

/// Binds what the configuration says of collections, for `catchword.attached`.
pub(crate) fn bind<'c>(question: Question, configs: impl IntoIterator<Item = &'c config::Collection>) -> Question {
    let (mut names, mut settings) = ([const { Vec::new() }; 3], Vec::new());
    for config in configs {
        for (list, name) in names.iter_mut().zip([&config.name, &config.table, &config.view]) {
            list.push(name.clone());
        }
        settings.push(attach::said(config));
    }
    names.into_iter().fold(question, Question::bind).bind(settings)
}

fn read(rows: &[PgRow], config: &config::Collection, prefix: &str) -> Result<Collection, Error> {
    let name = &config.name;
    let row = rows.iter().find(|row| row.try_get("name").is_ok_and(|found: &str| found == name));
    let row = row.ok_or_else(|| Error::refused_with(format!("collection {name} is not attached"), "run: catchword migrate"))?;
    if let Some(original) = row.try_get::<Option<String>, _>("copy_of")? {
        return Err(copy(&original));
    }
    let Some(members) = members(row)? else {
        return Err(Error::refused_with(
            format!("the table of collection {name} is gone"),
            format!("put it back from your backup, or if it is not needed any more run: catchword detach {name}"),
        ));
    };
    if !row.try_get::<bool, _>("view_exists")? {
        return Err(Error::refused_with(
            format!("the view {} of collection {name} is gone", row.try_get::<String, _>("view_name")?),
            "create it again",
        ));
    }
    let (key_types, alias): (Vec<String>, String) = (row.try_get("key_types")?, format!("{prefix}{}", config.index));
    let targets: Vec<String> = row.try_get("targets")?;
    let search_alias: Option<String> = row.try_get("search_alias")?;
    let mut unmigrated: Vec<String> = row.try_get("unmigrated")?;
    // with the prefix, which Postgres does not know
    if config.search_alias.as_ref().map(|alias| format!("{prefix}{alias}")) != search_alias {
        unmigrated.push("search_alias".into());
    }
    Ok(Collection {
        key_type: KeyType::named(&key_types)
            .ok_or_else(|| Error::refused(format!("collection {name} has a key of type {}", key_types.join(", "))))?,
        alias,
        search_alias,
        targets: targets.into_iter().map(Target::new).collect(),
        period: row.try_get("period")?,
        fair: row.try_get::<bool, _>("fair")?.then_some(config.fair_share),
        paused: row.try_get("paused")?,
        problems: row.try_get("problems")?,
        unmigrated,
        view_changed: row.try_get("view_changed")?,
        rebuilding: row.try_get("rebuilding")?,
        installation: row.try_get("installation")?,
        unwatched: row.try_get("unwatched")?,
        unwatched_columns: row.try_get("unwatched_columns")?,
        members,
        name: row.try_get("name")?,
    })
}

/// Its tables. None: the only one is gone.
fn members(row: &PgRow) -> Result<Option<Vec<Member>>, Error> {
    let (members, has_ids): (Value, bool) = (row.try_get("members")?, row.try_get("has_ids")?);
    let text = |member: &Value, key: &str| member[key].as_str().map(str::to_owned);
    let member = |member: &Value| {
        let statements = Statements::fill(&member["names"], has_ids);
        let (schema, problem) = (text(member, "schema"), text(member, "problem"));
        Some(Member { schema, problem, table: text(member, "table")?, view: text(member, "view")?, statements })
    };
    Ok(members.as_array().into_iter().flatten().map(member).collect())
}

impl Collection {
    /// What differs between the configuration and the database, and what to do; none: nothing.
    pub fn not_migrated(&self) -> Option<String> {
        let differ = self.unmigrated.join(", ");
        (!differ.is_empty()).then(|| format!("{differ}: the configuration and the database differ; run: catchword migrate"))
    }

    /// Refuses what cannot be served as it is.
    fn check(self) -> Result<Collection, Error> {
        self.check_targets()?;
        // one schema of many holds up nobody else
        let all = self.members.iter().all(|member| member.problem.is_some());
        match self.problems.iter().chain(self.members.iter().filter_map(|member| member.problem.as_ref()).filter(|_| all)).next() {
            Some(problem) => Err(with_remedy(problem)),
            None => Ok(self),
        }
    }

    /// Refuses another `index` or prefix than the documents are in: the new alias would stay empty while writes went to the old index.
    pub fn check_targets(&self) -> Result<(), Error> {
        let (name, alias) = (&self.name, &self.alias);
        match self.targets.iter().find(|target| !is_index_of(target.index(), alias)) {
            None => Ok(()),
            Some(target) => Err(Error::refused_with(
                format!("collection {name} is kept in index {target}, and the configuration asks for {alias}"),
                format!(
                    "correct `index` or CATCHWORD_INDEX_PREFIX, or begin again: catchword detach {name}, catchword migrate, \
                     catchword reindex {name} --all"
                ),
            )),
        }
    }
}

/// The refusal of a problem, with what helps: most of them `migrate` repairs, some name the statement themselves.
pub fn with_remedy(problem: &str) -> Error {
    match own_statement(problem) {
        (what, Some(sql)) => Error::refused_with(what, format!("run \"{sql}\"")),
        (what, None) => Error::refused_with(what, "run: catchword migrate"),
    }
}

/// A problem as `catchword.problems` returns it, one text: what is wrong, and the statement that it says to run, if it names one.
pub fn own_statement(problem: &str) -> (&str, Option<&str>) {
    let named = problem.strip_suffix('"').and_then(|text| text.split_once("; run \""));
    named.map_or((problem, None), |(what, sql)| (what, Some(sql)))
}

/// `annotation-000001` is an index of `annotation`.
fn is_index_of(index: &str, alias: &str) -> bool {
    let number = index.strip_prefix(alias).and_then(|rest| rest.strip_prefix('-'));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// What is wrong with what the promises rest on: triggers, columns, the view; and whether the configuration still names them. Empty:
/// nothing.
pub async fn problems(connection: &mut PgConnection, config: &config::Collection) -> Result<Vec<String>, Error> {
    let asked =
        sqlx::query_scalar(include_str!("problems.sql")).bind(&config.name).bind(&config.table).bind(&config.key).bind(&config.view);
    Ok(asked.fetch_all(connection).await?)
}

/// Who we are. Every index carries it.
pub async fn installation(connection: &mut PgConnection) -> Result<Uuid, Error> {
    Ok(sqlx::query_scalar(include_str!("installation.sql")).fetch_one(connection).await?)
}
