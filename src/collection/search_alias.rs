//! The search alias that a collection's index was put under. Remembered here, so that it is taken off when the configuration no longer
//! names it, and moved by a rebuild whatever the configuration of that process says.

use sqlx::{PgConnection, PgPool};

use crate::Error;
use crate::elastic::Target;

/// The search alias of a collection, and the indices that may have it; none: it has no search alias, or is not attached.
pub async fn search_alias(connection: &mut PgConnection, collection: &str) -> Result<Option<(String, Vec<Target>)>, Error> {
    let found: Option<(String, Vec<String>)> =
        sqlx::query_as(include_str!("search_alias.sql")).bind(collection).fetch_optional(connection).await?;
    Ok(found.map(|(alias, targets)| (alias, targets.into_iter().map(Target::new).collect())))
}

/// Remembers it, after the index was put under it; none: after it was taken off.
pub async fn set_search_alias(pool: &PgPool, collection: &str, alias: Option<&str>) -> Result<(), Error> {
    sqlx::query(include_str!("set_search_alias.sql")).bind(collection).bind(alias).execute(pool).await?;
    Ok(())
}
