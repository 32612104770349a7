//! Databases full of generated annotations, made once per run; each figure works on a copy.

use annotations::generate::{Generator, Insert, Operation};
use anyhow::Context;
use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, Connection, PgConnection, PgPool};

use crate::world::{Bench, url_of};

/// What a document weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Size {
    /// About 0.5 KB: an annotation as the generator makes it.
    Small,
    /// About 10 KB: the same with a long text.
    Large,
}

/// Whose rows the copies are, where a figure wants more than the generator is asked for.
pub const BULK_USER: &str = "acct:bulk@example.org";

/// Bytes of text that make a document of 10 KB.
const LONG: usize = 9_500;

impl Bench {
    /// The name of a database with this many rows. Made at its first use.
    pub async fn seed(&self, size: Size, rows: usize) -> anyhow::Result<String> {
        let mut seeds = self.seeds.lock().await;
        if let Some(name) = seeds.get(&(size, rows)) {
            return Ok(name.clone());
        }
        let name = format!("cw_bench_{}_{}_{rows}", self.id, if size == Size::Small { "small" } else { "large" });
        let mut server = PgConnection::connect(&self.server_url).await?;
        sqlx::query(AssertSqlSafe(format!("create database {name}"))).execute(&mut server).await?;
        let pool = PgPoolOptions::new().max_connections(1).connect(&url_of(&self.server_url, &name)?).await?;
        fill(&pool, size, rows).await?;
        pool.close().await;
        seeds.insert((size, rows), name.clone());
        Ok(name)
    }
}

/// Rows that the generator makes itself; what is beyond is copied from them under new ids, as one user's.
const GENERATED: usize = 200_000;

async fn fill(pool: &PgPool, size: Size, rows: usize) -> anyhow::Result<()> {
    annotations::migrate(pool).await?;
    let mut connection = pool.acquire().await?;
    let generated = rows.min(GENERATED);
    match size {
        Size::Small => {
            Generator::new(7).insert_many(&mut connection, generated).await?;
        }
        Size::Large => {
            let mut inserts = Generator::new(7).filter_map(|operation| match operation {
                Operation::Insert(insert) => Some(insert),
                _ => None,
            });
            let mut left = rows;
            while left > 0 {
                let n = left.min(500);
                insert_long(&mut connection, &mut inserts, n).await?;
                left -= n;
            }
        }
    }
    let copies = rows.saturating_sub(generated);
    if size == Size::Small && copies > 0 {
        let copy =
            "insert into annotation (created, updated, userid, groupid, text, tags, target_uri, target_uri_normalized, shared, document_id)
                    select created, updated, $1, groupid, text, tags, target_uri, target_uri_normalized, shared, document_id
                      from annotation, generate_series(1, $2) limit $3";
        let times = copies.div_ceil(generated) as i32;
        sqlx::query(copy).bind(BULK_USER).bind(times).bind(copies as i64).execute(&mut *connection).await?;
    }
    sqlx::query("vacuum (analyze) annotation").execute(&mut *connection).await?;
    sqlx::query("checkpoint").execute(&mut *connection).await?;
    Ok(())
}

/// Each text is several of the generator's, until it is long.
async fn insert_long(connection: &mut PgConnection, inserts: &mut impl Iterator<Item = Insert>, n: usize) -> anyhow::Result<()> {
    let (mut ids, mut users, mut texts, mut uris) = (vec![], vec![], vec![], vec![]);
    for _ in 0..n {
        let first = inserts.next().context("the generator never ends")?;
        let mut text = first.text.clone();
        while text.len() < LONG {
            text.push(' ');
            text += &inserts.next().context("the generator never ends")?.text;
        }
        ids.push(first.id);
        users.push(first.userid);
        texts.push(text);
        uris.push(first.target_uri);
    }
    let sql = "insert into annotation (id, userid, text, target_uri, target_uri_normalized)
               select id, userid, text, uri, uri from unnest($1::uuid[], $2::text[], $3::text[], $4::text[]) as made (id, userid, text, uri)";
    sqlx::query(sql).bind(ids).bind(users).bind(texts).bind(uris).execute(connection).await?;
    Ok(())
}
