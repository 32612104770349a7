//! Why documents may differ under equal numbers: what is known of the collection, and a pure judgement of it.

use serde::Serialize;
use sqlx::PgConnection;

use crate::collection::{Collection, Doubts};
use crate::{Error, job};

/// A likely cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// One word for scripts.
    pub cause: &'static str,
    /// The tables, columns or functions that it is about.
    pub names: Vec<String>,
    /// What is so.
    pub what: String,
    /// What to do about it.
    pub remedy: String,
}

/// What is known of a collection that lets documents differ under equal numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    pub collection: String,
    /// Why a change of a related table cannot be worked on.
    pub failing_touch: Option<String>,
    pub view_changed: bool,
    /// Tables that the view reads and that nobody watches or waived.
    pub unwatched: Vec<String>,
    pub doubts: Doubts,
    /// Did partitions of the table come or go within a day?
    pub repartitioned: bool,
}

impl Facts {
    /// Asks Postgres.
    pub async fn read(collection: &Collection, connection: &mut PgConnection) -> Result<Facts, Error> {
        Ok(Facts {
            collection: collection.name.clone(),
            failing_touch: job::failing_touch(connection, &collection.name).await?,
            view_changed: collection.view_changed,
            unwatched: collection.unwatched.clone(),
            doubts: collection.doubts(connection).await?,
            repartitioned: sqlx::query_scalar(include_str!("repartitioned.sql")).bind(&collection.name).fetch_one(connection).await?,
        })
    }

    /// The likely causes, the likeliest first; never none. Pure.
    pub fn causes(&self) -> Vec<Cause> {
        let Facts { collection, failing_touch, view_changed, unwatched, doubts, repartitioned } = self;
        let list = |names: &[String]| names.join(", ");
        let mut causes = Vec::new();
        let mut add = |cause, names: &[String], what: String, remedy: String| {
            causes.push(Cause { cause, names: names.to_vec(), what, remedy });
        };
        if let Some(error) = failing_touch {
            let what = format!("a change of a related table cannot be worked on: {error}");
            add("touch_fails", &[], what, "fix that: catchword status".into());
        }
        if *view_changed {
            let what = "the view or touches changed since the documents were built".into();
            add("view_changed", &[], what, format!("write them again: catchword reindex {collection} --all --rewrite"));
        }
        if *repartitioned {
            let what = "partitions of the table came or went, which fires no trigger: documents that show their rows are old".into();
            add("repartitioned", &[], what, format!("write them again: catchword audit {collection} --content --repair"));
        }
        if !unwatched.is_empty() {
            let what = format!("the view reads {}, and no change there reaches a document", list(unwatched));
            add("unwatched_table", unwatched, what, "name it in touches, then: catchword migrate".into());
        }
        if !doubts.columns.is_empty() {
            let what = format!("the view reads {}, which watch lacks: a change of it alone reaches no document", list(&doubts.columns));
            add("unwatched_column", &doubts.columns, what, "add it to watch, then: catchword migrate".into());
        }
        if !doubts.waived.is_empty() {
            let what = format!("the view reads {}, which unwatched names: documents may be older than it", list(&doubts.waived));
            add("waived_table", &doubts.waived, what, "if they may not, name it in touches instead, then: catchword migrate".into());
        }
        if !doubts.unsteady.is_empty() {
            let what = format!("the view calls {}: its documents change without a row", list(&doubts.unsteady));
            add("unsteady_view", &doubts.unsteady, what, "store what it computes in a column".into());
        }
        if !doubts.opaque.is_empty() {
            let what = format!("the view calls {}, and catchword cannot see which tables that reads", list(&doubts.opaque));
            add("opaque_function", &doubts.opaque, what, "name these tables in touches, then: catchword migrate".into());
        }
        if causes.is_empty() {
            causes.push(Cause {
                cause: "foreign_writer",
                names: Vec::new(),
                what: "nothing in the view explains it, so somebody else writes to the index, or a session wrote to the table with its triggers \
                       off, or a restored database gave numbers twice"
                    .into(),
                remedy: "find out who, and let only catchword write to the index".into(),
            });
        }
        causes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(facts: Facts) -> Vec<&'static str> {
        facts.causes().into_iter().map(|cause| cause.cause).collect()
    }

    #[test]
    fn each_cause_is_told_and_somebody_else_only_where_there_is_none() {
        let names = || vec!["x".to_owned()];
        let doubting = |doubts: Doubts| Facts { doubts, ..Facts::default() };
        assert_eq!(judged(Facts::default()), ["foreign_writer"]);
        for (facts, cause) in [
            (Facts { failing_touch: Some("no".into()), ..Facts::default() }, "touch_fails"),
            (Facts { view_changed: true, ..Facts::default() }, "view_changed"),
            (Facts { repartitioned: true, ..Facts::default() }, "repartitioned"),
            (Facts { unwatched: names(), ..Facts::default() }, "unwatched_table"),
            (doubting(Doubts { columns: names(), ..Doubts::default() }), "unwatched_column"),
            (doubting(Doubts { waived: names(), ..Doubts::default() }), "waived_table"),
            (doubting(Doubts { unsteady: names(), ..Doubts::default() }), "unsteady_view"),
            (doubting(Doubts { opaque: names(), ..Doubts::default() }), "opaque_function"),
            // waived and not read: it explains nothing
            (doubting(Doubts { needless: names(), ..Doubts::default() }), "foreign_writer"),
        ] {
            assert_eq!(judged(facts), [cause]);
        }
    }

    #[test]
    fn of_several_the_likeliest_comes_first() {
        let doubts = Doubts { unsteady: vec!["now()".into()], waived: vec!["country".into()], ..Doubts::default() };
        let facts = Facts { collection: "note".into(), view_changed: true, doubts, ..Facts::default() };
        let causes = facts.causes();
        assert_eq!(causes.iter().map(|cause| cause.cause).collect::<Vec<_>>(), ["view_changed", "waived_table", "unsteady_view"]);
        assert!(causes[0].remedy.contains("catchword reindex note --all --rewrite"), "{causes:?}");
        assert_eq!(causes[1].names, ["country"]);
    }
}
