//! Figure 9: one user has a million jobs pending, and another asks for a hundred at the same priority; then a thousand others do at once.

use std::collections::HashSet;

use catchword::job::{self, Cursor};

use crate::report::{Goal, Report};
use crate::scale::Scale;
use crate::seed::{BULK_USER, Size};
use crate::stats::grouped;
use crate::world::{Bench, Layout, World};

const ASKED: i64 = 100;

pub async fn run(bench: &Bench) -> anyhow::Result<Report> {
    // the generator makes 200,000 at most: of more, the rest is the bulk user's
    let rows = bench.scale.pick(1_200_000, 30_000, 400);
    let world = bench.world(Layout { size: Size::Small, rows, worker: "" }).await?;
    if bench.scale != Scale::Full {
        let all = format!("set local session_replication_role = replica; update annotation set userid = '{BULK_USER}'");
        world.sql(&format!("begin; {all}; commit")).await?;
    }
    let few = format!("select id from annotation limit {ASKED}");
    world.sql(&format!("update annotation set userid = 'acct:small@example.org' where id in ({few})")).await?;
    world.sql("truncate catchword.job").await?;
    let pending: i64 = world.one(&format!("select catchword.reindex('annotation', 'user', '{BULK_USER}')")).await?;
    // the bulk is under way when the other comes
    let asked: i64 = world.one("select catchword.reindex('annotation', 'user', 'acct:small@example.org')").await?;
    anyhow::ensure!(asked == ASKED, "{asked} were asked for");

    let small: HashSet<String> =
        world.all("select id::text from annotation where userid = 'acct:small@example.org'").await?.into_iter().collect();
    let mut transaction = world.pool.begin().await?;
    let (mut claimed, mut cursor) = (0, Cursor::TOP);
    for _ in 0..2 {
        let jobs = job::claim(&mut transaction, "annotation", cursor, 2_500).await?;
        claimed += jobs.iter().filter(|job| small.contains(&job.key)).count();
        cursor = jobs.last().map_or(Cursor::TOP, Cursor::behind);
    }
    transaction.rollback().await?;

    world.catchword.sync("bench", &[]).await?;
    world.catchword.sync("bench", &[]).await?;
    let mine = "select count(*) from catchword.job j join annotation a on a.id::text = j.key where a.userid = 'acct:small@example.org'";
    let left: i64 = world.one(mine).await?;
    let mut report = Report::default();
    let who = format!("of {ASKED} jobs asked for beside {} pending of one user", grouped(pending as f64));
    report.line(
        format!("{who}: in the first two batches"),
        claimed.to_string(),
        ASKED.to_string(),
        claimed as f64 / ASKED as f64,
        Goal::AtLeast(1.0),
    );
    let settled = ASKED - left;
    report.line(
        format!("{who}: settled by the second pass"),
        settled.to_string(),
        ASKED.to_string(),
        settled as f64 / ASKED as f64,
        Goal::AtLeast(1.0),
    );
    at_once(bench, &world, &mut report).await?;
    world.close().await?;
    Ok(report)
}

/// Reindexes of many users at once, behind one that began before them. If all of them take turns, all their jobs are
/// within as many turns as each has jobs, and one more: the first one may be half-way through a turn.
async fn at_once(bench: &Bench, world: &World, report: &mut Report) -> anyhow::Result<()> {
    let (users, each) = bench.scale.pick((1_000, 20), (100, 20), (5, 4));
    world.sql("truncate catchword.job").await?;
    world
        .sql(&format!(
            "begin; set local session_replication_role = replica;
             update annotation a set userid = 'acct:u' || (n % {users}) from (select id, row_number() over () as n from annotation limit {}) as few
              where a.id = few.id; commit; analyze annotation",
            users * each
        ))
        .await?;
    let pending: i64 = world.one(&format!("select catchword.reindex('annotation', 'user', '{BULK_USER}')")).await?;
    for user in 0..users {
        world.sql(&format!("select catchword.reindex('annotation', 'user', 'acct:u{user}')")).await?;
    }
    let first: i64 = world
        .one(&format!(
            "select count(*) from (select key from catchword.job where collection = 'annotation' order by priority, enqueued_at, id limit {})
                    as first join annotation a on a.id::text = first.key where a.userid like 'acct:u%'",
            (users + 1) * (each + 1)
        ))
        .await?;
    let asked = users * each;
    let who = format!(
        "of {} jobs of {} reindexes beside {} pending of one user",
        grouped(asked as f64),
        grouped(users as f64),
        grouped(pending as f64)
    );
    let ratio = first as f64 / asked as f64;
    report.line(
        format!("{who}: among the first {}", grouped(((users + 1) * (each + 1)) as f64)),
        first.to_string(),
        asked.to_string(),
        ratio,
        Goal::AtLeast(1.0),
    );
    Ok(())
}
