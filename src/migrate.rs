//! Makes the schema `catchword`, and says whether the one that is there is this version's.

use std::sync::LazyLock;

use sqlx::migrate::Migrator;
use sqlx::{PgConnection, PgPool};

use crate::Error;

/// The files of `migrations/`, with a bookkeeping table of our own: it never meets the application's.
static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| {
    let mut migrator = sqlx::migrate!();
    migrator.create_schema("catchword");
    migrator.dangerous_set_table_name("catchword._migrations");
    migrator
});

/// Applies what is missing. Repeating it changes nothing; two at once take turns.
pub async fn migrate(pool: &PgPool) -> Result<Vec<String>, Error> {
    let missing = pending(&mut *pool.acquire().await?).await?;
    MIGRATIONS.run(pool).await.map_err(|error| match error {
        sqlx::migrate::MigrateError::Execute(error) => Error::Postgres(error),
        other => Error::Schema(format!("the schema catchword cannot be migrated: {other}")),
    })?;
    Ok(missing.into_iter().map(|(name, _)| name).collect())
}

/// The migrations that are not applied yet: name and SQL. A schema that is newer than this binary is refused.
pub async fn pending(connection: &mut PgConnection) -> Result<Vec<(String, String)>, Error> {
    let applied = applied(connection).await?;
    if let Some(newer) = applied.iter().find(|version| !MIGRATIONS.version_exists(**version)) {
        return Err(Error::Schema(format!(
            "the schema catchword is at version {newer}, newer than this binary; install the newer catchword"
        )));
    }
    let missing = MIGRATIONS.iter().filter(|migration| !applied.contains(&migration.version));
    Ok(missing
        .map(|m| (format!("{:04} {}", m.version, m.description), m.sql.as_str().to_owned()))
        .collect())
}

/// Refuses a schema that is missing, older or newer.
pub async fn check_version(connection: &mut PgConnection) -> Result<(), Error> {
    let missing = pending(connection).await?;
    match missing.first() {
        None => Ok(()),
        Some(_) if missing.len() == MIGRATIONS.iter().count() => Err(Error::Schema(
            "there is no schema catchword in this database; run: catchword migrate".into(),
        )),
        Some((name, _)) => Err(Error::Schema(format!(
            "the schema catchword is older than this binary, it lacks {name}; run: catchword migrate"
        ))),
    }
}

async fn applied(connection: &mut PgConnection) -> Result<Vec<i64>, Error> {
    let there: bool = sqlx::query_scalar("select to_regclass('catchword._migrations') is not null")
        .fetch_one(&mut *connection)
        .await?;
    if !there {
        return Ok(Vec::new());
    }
    Ok(
        sqlx::query_scalar("select version from catchword._migrations where success order by version")
            .fetch_all(connection)
            .await?,
    )
}
