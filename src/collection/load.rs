//! Reads a collection back from where it was attached.

use sqlx::{PgConnection, Row};
use uuid::Uuid;

use super::statements::Statements;
use super::{Collection, KeyType};
use crate::Error;
use crate::config;
use crate::elastic::Target;

/// The collection as it is attached now. A configured one that is not attached is refused.
pub async fn load(connection: &mut PgConnection, config: &config::Collection, prefix: &str) -> Result<Collection, Error> {
    let name = &config.name;
    let row = sqlx::query(include_str!("load.sql")).bind(name).fetch_optional(connection).await?;
    let row = row.ok_or_else(|| Error::Refused(format!("collection {name} is not attached; run: catchword migrate")))?;
    if row.try_get::<Option<String>, _>("table_name")?.is_none() {
        return Err(Error::Refused(format!("the table of collection {name} is gone; run: catchword detach {name}")));
    }
    if !row.try_get::<bool, _>("view_exists")? {
        return Err(Error::Refused(format!(
            "the view {} of collection {name} is gone; create it again",
            row.try_get::<String, _>("view_name")?
        )));
    }
    let (key_type, alias): (String, String) = (row.try_get("key_type")?, format!("{prefix}{}", config.index));
    let targets: Vec<String> = row.try_get("targets")?;
    Ok(Collection {
        key_type: KeyType::named(&key_type).ok_or_else(|| Error::Refused(format!("collection {name} has a key of type {key_type}")))?,
        alias,
        targets: targets.into_iter().map(Target::new).collect(),
        period: row.try_get("period")?,
        paused: row.try_get("paused")?,
        statements: Statements::fill(&row)?,
        name: row.try_get("name")?,
    })
}

impl Collection {
    /// Refuses another `index` or prefix than the documents are in: the new alias would stay empty while writes went to the old index.
    pub fn check_targets(&self) -> Result<(), Error> {
        let (name, alias) = (&self.name, &self.alias);
        match self.targets.iter().find(|target| !is_index_of(target.index(), alias)) {
            None => Ok(()),
            Some(target) => Err(Error::Refused(format!(
                "collection {name} is kept in index {target}, and the configuration asks for {alias}; \
                 correct `index` or CATCHWORD_INDEX_PREFIX, or begin anew: catchword detach {name}, catchword migrate, \
                 catchword reindex {name} --all"
            ))),
        }
    }
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
