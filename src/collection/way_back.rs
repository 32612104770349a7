//! Can the rows that refer to a changed related row be found? It is asked with the very condition that a worker will use.

use serde_json::Value;
use sqlx::{FromRow, PgConnection};

use super::{Collection, plan};
use crate::Error;

/// How the rows of one entry of `touches` are found.
#[derive(Clone, Debug, FromRow)]
struct WayBack {
    /// The related table.
    related: String,
    /// The columns, or the query.
    found_by: String,
    plan: Option<Value>,
    /// Why they cannot be found at all.
    problem: Option<String>,
    /// What makes it fast.
    remedy: String,
}

/// An entry of `touches` whose rows cannot be found, or only by reading a whole table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    pub says: String,
    pub fix: String,
    /// Will each change of the related table fail?
    pub fails: bool,
}

impl Collection {
    /// Asks how the rows of each related table are found, and says what is wrong.
    pub async fn ways_back(&self, connection: &mut PgConnection) -> Result<Vec<Lost>, Error> {
        let ways: Vec<WayBack> = sqlx::query_as(include_str!("touch_plans.sql")).bind(&self.name).fetch_all(connection).await?;
        Ok(ways.iter().filter_map(judge).collect())
    }
}

fn judge(way: &WayBack) -> Option<Lost> {
    let WayBack { related, found_by, .. } = way;
    if let Some(problem) = &way.problem {
        let says = format!("a change of {related} finds no rows by {found_by}: {problem}");
        return Some(Lost { says, fix: "correct touches, then run: catchword migrate".into(), fails: true });
    }
    let read = plan::without_index(way.plan.as_ref()?)?;
    let says =
        format!("a change of {related} looks for its rows by {found_by}, and no index serves that: each change reads the whole of {read}");
    Some(Lost { says, fix: way.remedy.clone(), fails: false })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_way_back_is_judged_by_its_plan_however_small_the_table_is() {
        let way = |plan: Option<Value>, problem: Option<&str>| WayBack {
            related: "tag".into(),
            found_by: "tag_id".into(),
            plan,
            problem: problem.map(str::to_owned),
            remedy: "run: create index".into(),
        };
        let plan = |node: &str| Some(json!([{ "Plan": { "Node Type": node, "Relation Name": "post_tag" } }]));
        let served =
            Some(json!([{ "Plan": { "Node Type": "Index Scan", "Relation Name": "post_tag", "Index Cond": "(tag_id = any($1))" } }]));
        assert_eq!(judge(&way(served, None)), None);
        let lost = judge(&way(plan("Seq Scan"), None)).unwrap();
        assert!(!lost.fails && lost.says.ends_with("reads the whole of post_tag") && lost.fix == "run: create index", "{lost:?}");
        let lost = judge(&way(None, Some("relation \"post_tag\" does not exist"))).unwrap();
        assert!(lost.fails && lost.says.contains("does not exist"), "{lost:?}");
    }
}
