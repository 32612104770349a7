//! Is everything in place that the promises rest on? Facts are read by small statements and requests, and judged by pure functions;
//! one file per group. Nothing is changed.

mod elastic;
mod index;
mod line;
mod locked;
mod mapping;
mod postgres;
mod rights;
mod schema;
mod table;
mod trial;
mod view;
mod work;

use std::time::Duration;

use sqlx::PgConnection;
use uuid::Uuid;

use crate::collection::{self, Collection};
use crate::config::{self, CANARY, Environment};
use crate::context::Context;
use crate::{Error, database, migrate};
use elastic::doctor_elasticsearch;
use index::doctor_index;

pub use line::{Level, Line, Report, Shown};
use line::{fail, ok};

/// Each statement has half of this, so that a view may take as long as a look may.
const STATEMENT: Duration = Duration::from_secs(20);
/// For everything in Postgres: a person waits.
const POSTGRES: Duration = Duration::from_secs(60);
/// A server that does not answer within this time is down.
const HELLO: Duration = Duration::from_secs(5);
/// What helps where an error names no remedy of its own.
const MIGRATE: &str = "run: catchword migrate";

/// The collections that can be looked at, and whose indices they are.
type Attached = (Vec<Collection>, Uuid);

/// Looks at everything. A server that is down is one line, and the other is still checked.
pub(crate) async fn doctor(context: &Context, environment: &Environment) -> Report {
    let mut report = Report::default();
    let looked = tokio::time::timeout(POSTGRES, doctor_postgres(context, environment, &mut report)).await;
    let attached = match looked {
        Ok(Ok(attached)) => attached,
        Ok(Err(error)) => {
            report.unseen.push(format!("postgres, and what is in it: {error}"));
            None
        }
        Err(_) => {
            report.unseen.push("postgres: it does not answer any more".into());
            None
        }
    };
    match doctor_elasticsearch(context, environment).await {
        Ok(lines) => report.add("elasticsearch", lines),
        Err(error) => {
            report.add("elasticsearch", [fail("answers", error.to_string(), "start it, or correct ELASTICSEARCH_URL")]);
            report.unseen.push("elasticsearch, and the indices in it".into());
            return report;
        }
    }
    if let Some((collections, installation)) = attached {
        for collection in &collections {
            let lines = doctor_index(context, collection, installation).await;
            report.add(&format!("{} index", collection.name), lines);
        }
    }
    report
}

/// None: there is no schema to look into.
async fn doctor_postgres(context: &Context, environment: &Environment, report: &mut Report) -> Result<Option<Attached>, Error> {
    let hello = async {
        context.reach_postgres().await?;
        database::beside(&context.pool, STATEMENT).await
    };
    let hello = tokio::time::timeout(HELLO, hello).await;
    let mut connection = match hello {
        Ok(Ok(connection)) => connection,
        Ok(Err(Error::Refused { what, remedy })) => {
            report.add("postgres", [fail("sessions", what, remedy.unwrap_or_default())]);
            return Err(Error::refused("it cannot be worked with"));
        }
        Ok(Err(error)) => return Err(down(report, error.to_string())),
        Err(_) => return Err(down(report, "it does not answer within 5 s".into())),
    };
    let connection = &mut connection;
    report.add("postgres", postgres::look(connection, environment, &context.config).await?);
    match migrate::check_version(connection).await {
        Ok(()) => report.add("schema", [ok("version", "the schema catchword is this version's")]),
        Err(Error::Schema { what, remedy }) => {
            report.add("schema", [fail("version", what, remedy.as_deref().unwrap_or(MIGRATE))]);
            return Ok(None);
        }
        Err(error) => return Err(error),
    }
    let (rights, sees_the_queue) = rights::look(connection).await?;
    if !sees_the_queue {
        report.add("rights", rights);
        report
            .unseen
            .push("tables, views, indices and the queue: this is the role of a service; run doctor as a worker or an operator".into());
        return Ok(None);
    }
    report.add("schema", schema::look(connection).await?);
    report.add("rights", rights);
    let mut collections = Vec::new();
    for config in context.config.served() {
        let group = format!("{} table", config.name);
        match collection::load(connection, config, &context.prefix).await {
            Ok(collection) => {
                match doctor_table(connection, context, config, &collection, report).await {
                    Err(error) if error.is_too_slow() => report.add(&group, [locked::look(connection, &error).await?]),
                    looked => looked?,
                }
                collections.push(collection);
            }
            Err(error) if error.is_too_slow() => report.add(&group, [locked::look(connection, &error).await?]),
            Err(Error::Refused { what, remedy }) => {
                report.add(&group, [fail("attached", what, remedy.as_deref().unwrap_or(MIGRATE))]);
            }
            Err(error) => return Err(error),
        }
    }
    let names: Vec<String> = context.config.collections.iter().map(|config| config.name.clone()).chain([CANARY.to_owned()]).collect();
    report.add("work", work::look(connection, &names).await?);
    Ok(Some((collections, collection::installation(connection).await?)))
}

/// A table and its view. What was found before it failed is in the report.
async fn doctor_table(
    connection: &mut PgConnection,
    context: &Context,
    config: &config::Collection,
    collection: &Collection,
    report: &mut Report,
) -> Result<(), Error> {
    let group = format!("{} table", config.name);
    report.add(&group, table::look(connection, config, collection).await?);
    // what is missing is already a line about the table; whatever else needs it cannot be told
    let broken = |error: &Error| error.sqlstate().is_some() && !error.is_too_slow() && !collection.problems.is_empty();
    match trial::look(connection, collection).await {
        Err(error) if broken(&error) => {}
        lines => report.add(&group, lines?),
    }
    let lines = match view::look(connection, config, collection, &context.config).await {
        Err(error) if broken(&error) => vec![fail("shape", error.to_string(), "fix the table first, as its own lines say")],
        lines => lines?,
    };
    report.add(&format!("{} view", config.name), lines);
    Ok(())
}

fn down(report: &mut Report, why: String) -> Error {
    report.add("postgres", [fail("answers", why, "start it, or correct DATABASE_URL")]);
    Error::refused("it does not answer")
}
