mod commands;
mod follow;
mod operators;
mod where_sql;

use catchword::reindex::Progress;

use crate::common::{Layout, World};

/// A collection with a number as its key, a scope of type char(10) and a period without a time zone. Its rows are there before it is
/// attached, so that they have no jobs.
pub fn with_numbers(rows: u32) -> Layout {
    Layout {
        more: "[[collection]]\nname = \"number\"\ntable = \"number\"\nkey = \"id\"\nview = \"number_document\"\nmapping = \"bystander.json\"\nscopes = { code = \"code\", parity = \"even\" }\nperiod = \"at\"\n".into(),
        sql: format!(
            "create table number (id bigint primary key, code char(10), even boolean, at timestamp, text text, catchword_revision bigint);
             comment on column number.catchword_revision is 'catchword: revision';
             create view number_document as select id as key, catchword_revision as revision, json_build_object('text', text) as body from number where text is not null;
             insert into number select i, case when i % 2 = 0 then 'even' else 'elven' end, i % 2 = 0, '2026-01-01'::timestamp + i * interval '1 hour', 'n' from generate_series(1, {rows}) i;
             analyze number;"
        ),
        ..Layout::default()
    }
}

impl World {
    /// The keys of a collection's jobs in the order they would be claimed.
    pub async fn walk(&self, collection: &str) -> Vec<String> {
        self.all(&format!("select key from catchword.job where collection = '{collection}' order by priority, enqueued_at, id")).await
    }

    /// Rows of a user, with no jobs.
    pub async fn write_down(&self, user: &str, rows: i32) {
        self.sql(&format!(
            "insert into annotation (userid, target_uri, target_uri_normalized) select '{user}', 'http://x/', 'x' from generate_series(1, {rows})"
        ))
        .await;
        self.sql("delete from catchword.job where collection = 'annotation'").await;
    }

    pub async fn reindex(&self, words: &[&str]) -> (i32, String, String) {
        let mut all = vec!["reindex"];
        all.extend(words);
        self.run(&all).await
    }

    pub async fn reindexed(&self, words: &[&str]) -> String {
        let (code, out, err) = self.reindex(words).await;
        assert_eq!(code, 0, "{words:?}: {out}{err}");
        out
    }

    /// Starts a reindex by the command; returns its number.
    pub async fn started(&self, words: &[&str]) -> i64 {
        self.reindexed(words).await;
        self.one("select max(id) from catchword.reindex").await
    }

    /// Schedules what there is room for, as a worker does.
    pub async fn fed(&self, collection: &str) -> i64 {
        let mut all = 0;
        loop {
            match self.one::<i64>(&format!("select scheduled from catchword.feed_reindexes(array['{collection}'])")).await {
                0 => return all,
                scheduled => all += scheduled,
            }
        }
    }

    /// How far a reindex came.
    pub async fn progress(&self, id: i64) -> Progress {
        let mut connection = self.pool.acquire().await.unwrap();
        catchword::reindex::show(&mut connection, id).await.unwrap().unwrap()
    }
}
