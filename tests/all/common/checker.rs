//! Compares both sides, every key both ways, by revision and content.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sqlx::Row;

use super::World;

/// What Postgres wants of a key: the version, and the document if there is to be one.
type Wants = BTreeMap<String, (i64, Option<Value>)>;

/// Where the truth about a collection is, in plain SQL that knows nothing of catchword's own.
#[derive(Clone, Copy)]
pub struct Truth<'a> {
    pub collection: &'a str,
    /// Returns `key` as text and `revision` of every row.
    pub rows: &'a str,
    /// Returns `key` as text, `revision` and `body` of every row of the view.
    pub documents: &'a str,
}

const ANNOTATION: Truth = Truth {
    collection: "annotation",
    rows: "select id::text as key, catchword_revision as revision from annotation",
    documents: "select key::text as key, revision, body from annotation_document",
};

impl World {
    /// Every key of `annotation` agrees, both ways, in each of its indices. To be asked when nothing is open or in flight.
    pub async fn both_sides_agree(&self) {
        self.agree_on(ANNOTATION).await;
    }

    /// The same of any collection.
    pub async fn agree_on(&self, truth: Truth<'_>) {
        for index in self.targets(truth.collection).await {
            self.agrees(truth, &index).await;
        }
    }

    /// The same where documents have other ids than their keys. What never had a document has no id either.
    pub async fn agree_by_id(&self, truth: Truth<'_>, id: impl Fn(&str) -> String) {
        for index in self.targets(truth.collection).await {
            let wants = self.wants(truth, "").await;
            let has = self.everything_in(&index).await;
            let never_shown = |key: &String| has.contains_key(&format!("catchword-key:{key}")) && !has.contains_key(&id(key));
            let wants = wants.into_iter().filter(|(key, (_, body))| body.is_some() || !never_shown(key));
            compare(&index, wants.map(|(key, want)| (id(&key), want)).collect(), has);
        }
    }

    /// The same of a collection whose key is one column, by the names that it was attached with.
    pub async fn sides_agree(&self, collection: &str) {
        let names: Vec<String> = self
            .one(&format!(
                "select array[view, source::text, quote_ident(key_columns[1]), quote_ident(revision_column)] from catchword.collection where name = '{collection}'"
            ))
            .await;
        let [view, table, key, revision] = names.as_slice() else { panic!("{names:?}") };
        let rows = format!("select {key}::text as key, {revision} as revision from {table}");
        let documents = format!("select key::text as key, revision, body from {view}");
        self.agree_on(Truth { collection, rows: &rows, documents: &documents }).await;
    }

    async fn agrees(&self, truth: Truth<'_>, index: &str) {
        compare(index, self.wants(truth, "").await, self.everything_in(index).await);
    }

    /// Promise 3, at any instant: what the index does not show yet has a job or a dead letter.
    pub async fn intent_is_durable(&self) {
        // two conditions and no `or`: then it is a hash join, also with many thousands of jobs
        let without_job = "and not exists (select from catchword.job j where j.collection = 'annotation' and j.key = keyed.key)
                           and not exists (select from catchword.job j where j.collection = 'annotation' and j.name = 'touch')
                           and not exists (select from catchword.dead_job d where d.collection = 'annotation' and d.key = keyed.key)";
        // an index that is being filled is told everything by the rebuild, which is written down; from then on by jobs
        let told = "select case when exists (select from catchword.rebuild r where r.collection = c.name and (r.stage = 'fill' or r.stage = 'drain' and exists
                        (select from catchword.reindex f where f.tag = 'reindex.rebuild.' || r.id and f.finished_at is null))) then targets[1:1] else targets end
                      from catchword.collection c where name = 'annotation'";
        let told: Vec<String> = self.one(told).await;
        // the index is looked at after the snapshot: it can only be newer
        let wants = self.wants(ANNOTATION, without_job).await;
        for index in told {
            let has = self.everything_in(&index).await;
            for (key, (version, body)) in &wants {
                let seen = has.get(key).map(|(seen, _)| *seen);
                let shown = if body.is_some() { seen >= Some(*version) } else { seen >= Some(*version) || seen.is_none() };
                assert!(shown, "{key} is forgotten: Postgres wants {version}, {index} has {seen:?}, and there is no job");
            }
        }
    }

    async fn wants(&self, truth: Truth<'_>, condition: &str) -> Wants {
        let Truth { collection, rows, documents } = truth;
        let sql = format!(
            "with recorded as (select key, max(revision) as revision from catchword.record where collection = '{collection}' group by key),
                  rows as ({rows}), documents as ({documents})
             select keyed.key, keyed.version, keyed.body from (
               select v.key, greatest(v.revision, c.floor, r.revision + r.revision % 2) as version, v.body::text as body
                 from catchword.collection c, documents v left join recorded r on r.key = v.key where c.name = '{collection}'
               union all
               select t.key, greatest(t.revision, c.floor, r.revision + r.revision % 2) + 1, null
                 from catchword.collection c, rows t left join recorded r on r.key = t.key
                where c.name = '{collection}' and not exists (select from documents v where v.key = t.key)
               union all
               select d.key, d.revision, null from recorded d
                where d.revision % 2 = 1 and not exists (select from rows t where t.key = d.key)
             ) as keyed where true {condition}"
        );
        let rows = sqlx::query(sqlx::AssertSqlSafe(sql)).fetch_all(&self.pool).await.unwrap();
        rows.iter()
            .map(|row| {
                let body: Option<String> = row.get("body");
                (row.get("key"), (row.get("version"), body.map(|body| serde_json::from_str(&body).unwrap())))
            })
            .collect()
    }

    /// Every document and tombstone of the first index, with its version, as a realtime look sees it.
    pub async fn everything_in_the_index(&self) -> BTreeMap<String, (i64, Value)> {
        self.everything_in(&self.index("annotation")).await
    }

    /// The same of any index.
    pub async fn everything_in(&self, index: &str) -> BTreeMap<String, (i64, Value)> {
        self.http("POST", &format!("/{index}/_refresh"), None).await;
        // by a scroll, which every server has, and which is not how catchword walks
        let first = json!({ "size": 10_000, "version": true, "sort": ["_doc"] });
        let (mut status, mut answer) = self.http("POST", &format!("/{index}/_search?scroll=1m"), Some(first)).await;
        let mut everything = BTreeMap::new();
        loop {
            assert_eq!(status, 200, "{answer}");
            let hits = answer["hits"]["hits"].as_array().unwrap();
            for hit in hits {
                let key = hit["_id"].as_str().unwrap().to_owned();
                everything.insert(key, (hit["_version"].as_i64().unwrap(), hit["_source"].clone()));
            }
            let scroll = answer["_scroll_id"].clone();
            if hits.len() < 10_000 {
                self.http("DELETE", "/_search/scroll", Some(json!({ "scroll_id": scroll }))).await;
                return everything;
            }
            (status, answer) = self.http("POST", "/_search/scroll", Some(json!({ "scroll": "1m", "scroll_id": scroll }))).await;
        }
    }
}

/// Every key of one side is on the other, with the same number and content.
fn compare(index: &str, wants: Wants, has: BTreeMap<String, (i64, Value)>) {
    for (key, (version, body)) in &wants {
        let Some((seen, source)) = has.get(key) else { panic!("{key} is lost: Postgres wants {version}, {index} has nothing") };
        match body {
            Some(body) => {
                assert_eq!(seen, version, "{key} is stale or ahead");
                assert_eq!(source, body, "{key} has other content under version {version}");
            }
            None => assert_eq!(source, &json!({ "catchword_deleted": true }), "{key} is a ghost: gone at {version}, seen at {seen}"),
        }
    }
    for (key, (seen, source)) in &has {
        let gone = source == &json!({ "catchword_deleted": true });
        assert!(gone || wants.contains_key(key), "{key} is a ghost that Postgres never had, at {seen}");
    }
}
