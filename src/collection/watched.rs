//! Are all changes that change documents noticed? A table that the view reads and nobody watches is refused; what is only doubtful is told.

use serde::Serialize;
use sqlx::{FromRow, PgConnection};

use super::Collection;
use crate::{Error, config};

/// What is doubtful about a view.
#[derive(Clone, Debug, Default, FromRow, Serialize)]
pub struct Doubts {
    /// What it calls that says something else at another time or to another session.
    pub unsteady: Vec<String>,
    /// Functions that it calls and that may read tables which nobody can name.
    pub opaque: Vec<String>,
    /// Tables that are waived, and that it does not read.
    pub needless: Vec<String>,
    /// Tables that are waived, and that it reads.
    pub waived: Vec<String>,
    /// Columns of the table that it reads and `watch` lacks.
    #[sqlx(skip)]
    pub columns: Vec<String>,
}

impl Collection {
    /// Asks what is doubtful about its view.
    pub async fn doubts(&self, connection: &mut PgConnection) -> Result<Doubts, Error> {
        let doubts: Doubts = sqlx::query_as(include_str!("warnings.sql")).bind(&self.name).fetch_one(connection).await?;
        Ok(Doubts { columns: self.unwatched_columns.clone(), ..doubts })
    }

    /// What is wrong, if changes of a table that the view reads are noticed by nobody.
    pub fn unwatched_sentence(&self) -> Option<String> {
        let tables = self.unwatched.join(", ");
        let it = if self.unwatched.len() == 1 { "it" } else { "they" };
        (!tables.is_empty()).then(|| {
            format!("the view reads {tables}, and no change there reaches a document: {it} must be in touches, or listed in unwatched")
        })
    }
}

impl Doubts {
    /// Each doubt in a sentence, with what to do.
    pub fn sentences(&self) -> Vec<(String, &'static str)> {
        let list = |names: &[String]| names.join(", ");
        [
            (
                &self.unsteady,
                format!("the view calls {}: its documents change without a row, and catchword cannot notice it", list(&self.unsteady)),
                "store what it computes in a column, or let the search compare; or write all of them again now and then: catchword reindex --all --rewrite",
            ),
            (
                &self.opaque,
                format!("the view calls {}, and catchword cannot see which tables that reads", list(&self.opaque)),
                "name these tables in touches; a function that reads none may be declared immutable, one with a body `begin atomic` is looked into",
            ),
            (
                &self.columns,
                format!("the view reads {}, which watch lacks: a change of it alone reaches no document", list(&self.columns)),
                "add it to watch, or take it out of the view",
            ),
            (&self.needless, format!("unwatched names {}, which the view does not read", list(&self.needless)), "take it out of unwatched"),
        ]
        .into_iter()
        .filter(|(names, ..)| !names.is_empty())
        .map(|(_, says, fix)| (says, fix))
        .collect()
    }
}

/// Refuses a view that reads a table whose changes nobody is told of.
pub(super) fn check_watched(config: &config::Collection, collection: &Collection) -> Result<(), Error> {
    match (collection.unwatched_sentence(), collection.unwatched.first()) {
        (Some(sentence), Some(first)) => Err(Error::refused_with(
            format!("collection {}: {sentence}", config.name),
            format!(
                "write touches = [{{ table = \"{first}\", column = \"…\", row_column = \"…\" }}], \
                 or unwatched = [\"{first}\"] if documents may be older than {first}"
            ),
        )),
        _ => Ok(()),
    }
}
