//! The files of `migrations/`: which are applied, and whether the schema that is there is this version's.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use sqlx::migrate::Migrator;
use sqlx::{PgConnection, PgPool};

use crate::Error;
use crate::alone::Alone;

/// The files of `migrations/`, with a bookkeeping table of our own: it never meets the application's.
static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| {
    let mut migrator = sqlx::migrate!();
    migrator.create_schema("catchword");
    migrator.dangerous_set_table_name("catchword._migrations");
    // its own lock says nothing of who holds it
    migrator.set_locking(false);
    migrator
});

/// As Postgres calls it.
pub(crate) const UTF8: &str = "UTF8";

/// How long to wait for another migrate: a schema is made within seconds.
const TURN: Duration = Duration::from_secs(30);

/// Applies what is missing. Repeating it changes nothing; two at once take turns.
pub async fn apply(pool: &PgPool) -> Result<Vec<String>, Error> {
    let _turn = turn(pool).await?;
    let missing = pending(&mut *pool.acquire().await?).await?;
    MIGRATIONS.run(pool).await.map_err(|error| match error {
        // nothing is written down as applied, and something is there
        sqlx::migrate::MigrateError::ExecuteMigration(cause, 1) if is_there_already(&cause) => Error::Schema {
            what: "the schema catchword has tables, and its list of migrations is empty: it was loaded from a dump without rows".into(),
            remedy: Some("if no other database uses it, run: drop schema catchword cascade; then: catchword migrate".into()),
        },
        sqlx::migrate::MigrateError::Execute(error) => Error::Postgres(error),
        other => Error::Schema { what: format!("the schema catchword cannot be migrated: {other}"), remedy: None },
    })?;
    Ok(missing.into_iter().map(|(name, _)| name).collect())
}

/// A relation of that name exists.
fn is_there_already(error: &sqlx::Error) -> bool {
    error.as_database_error().and_then(|error| error.code()).is_some_and(|code| code == "42P07")
}

/// Documents and keys are UTF-8. Elsewhere Postgres keeps bytes that are none, or letters that others lack, and one such key would fail
/// every claim of its collection.
pub async fn refuse_encoding(connection: &mut PgConnection) -> Result<(), Error> {
    let encoding: String = sqlx::query_scalar(include_str!("encoding.sql")).fetch_one(connection).await?;
    if encoding == UTF8 {
        return Ok(());
    }
    Err(Error::refused_with(
        format!("this database has the encoding {encoding}, and catchword needs {UTF8}"),
        format!("create one with encoding '{UTF8}' and move the data there by pg_dump"),
    ))
}

/// Waits until no other migrate is at it. There may be no table to lock yet, so the lock is a session's.
async fn turn(pool: &PgPool) -> Result<Alone, Error> {
    let started = Instant::now();
    loop {
        let connection = pool.acquire().await?.detach();
        match Alone::take(connection, "catchword.migrate").await? {
            Ok(alone) => return Ok(alone),
            Err(holder) if started.elapsed() > TURN => {
                return Err(Error::refused_with(
                    format!("another migrate seems to run: its lock is held by {holder}"),
                    "wait for it, or end it",
                ));
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// The migrations that are not applied yet: name and SQL. A schema that is newer than this binary is refused.
pub async fn pending(connection: &mut PgConnection) -> Result<Vec<(String, String)>, Error> {
    let applied = applied(connection).await?;
    if let Some(newer) = applied.iter().find(|version| !MIGRATIONS.version_exists(**version)) {
        return Err(Error::Schema {
            what: format!("the schema catchword is at version {newer}, newer than this binary"),
            remedy: Some("install the newer catchword".into()),
        });
    }
    let missing = MIGRATIONS.iter().filter(|migration| !applied.contains(&migration.version));
    Ok(missing.map(|m| (format!("{:04} {}", m.version, m.description), m.sql.as_str().to_owned())).collect())
}

/// Applies migrations inside the caller's transaction, which is meant to be undone: for a dry run.
pub async fn apply_for_a_look(connection: &mut PgConnection, pending: &[(String, String)]) -> Result<(), Error> {
    sqlx::query("create schema if not exists catchword").execute(&mut *connection).await?;
    let mine = MIGRATIONS.iter().map(|m| (format!("{:04} {}", m.version, m.description), &m.sql));
    for (name, sql) in mine {
        if pending.iter().any(|(pending, _)| *pending == name) {
            sqlx::raw_sql(sql.clone()).execute(&mut *connection).await?;
        }
    }
    Ok(())
}

/// Refuses a schema that is missing, older or newer.
pub async fn check_version(connection: &mut PgConnection) -> Result<(), Error> {
    let missing = pending(connection).await?;
    let what = match missing.first() {
        None => return Ok(()),
        Some(_) if missing.len() == MIGRATIONS.iter().count() => "there is no schema catchword in this database".into(),
        Some((name, _)) => format!("the schema catchword is older than this binary, it lacks {name}"),
    };
    Err(Error::Schema { what, remedy: Some("run: catchword migrate".into()) })
}

async fn applied(connection: &mut PgConnection) -> Result<Vec<i64>, Error> {
    let there: bool = sqlx::query_scalar("select to_regclass('catchword._migrations') is not null").fetch_one(&mut *connection).await?;
    if !there {
        return Ok(Vec::new());
    }
    Ok(sqlx::query_scalar("select version from catchword._migrations where success order by version").fetch_all(connection).await?)
}
