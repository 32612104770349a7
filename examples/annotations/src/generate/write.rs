//! Writes a generator's operations into Postgres, many per statement.

use std::collections::{BTreeMap, HashMap};

use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use crate::generate::{Edit, Generator, Insert, Operation, Remove};
use crate::uri::normalize;

/// Inserts per statement and transaction.
///
/// Large enough that a round trip does not matter, and below the 1,000 rows from which catchword
/// takes a statement for a mass update and schedules it behind everybody's live writes.
pub const BATCH: usize = 500;

/// What [`Generator::insert_many`] did. An operation that was done before counts nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Written {
    /// New rows.
    pub inserted: u64,
    /// Rows with a new text.
    pub edited: u64,
    /// Rows that are now deleted.
    pub deleted: u64,
}

impl std::ops::AddAssign for Written {
    fn add_assign(&mut self, more: Self) {
        self.inserted += more.inserted;
        self.edited += more.edited;
        self.deleted += more.deleted;
    }
}

impl Generator {
    /// Writes the next `n` annotations, with the edits and deletes between them.
    ///
    /// In batches of [`BATCH`] inserts, each a transaction of its own (a savepoint, if the caller
    /// has one open). Ids come from the seed and a row that exists is left as it is, so a run that
    /// was cut off is simply started again.
    pub async fn insert_many(&mut self, conn: &mut PgConnection, n: usize) -> Result<Written, sqlx::Error> {
        let mut written = Written::default();
        for start in (0..n).step_by(BATCH) {
            let batch = Batch::take(self, BATCH.min(n - start));
            let mut tx = conn.begin().await?;
            written += batch.write(&mut tx).await?;
            tx.commit().await?;
        }
        Ok(written)
    }
}

/// Operations that are written together. Their order may be inserts, edits, deletes: nothing is
/// edited before it is inserted or after it is deleted, and of several edits the last one stays.
#[derive(Default)]
struct Batch {
    inserts: Vec<Insert>,
    edits: HashMap<Uuid, Edit>,
    deletes: Vec<Remove>,
}

impl Batch {
    fn take(generator: &mut Generator, inserts: usize) -> Self {
        let mut batch = Self::default();
        while batch.inserts.len() < inserts || !generator.is_even() {
            match generator.next() {
                Some(Operation::Insert(insert)) => batch.inserts.push(insert),
                Some(Operation::Edit(edit)) => {
                    batch.edits.insert(edit.id, edit);
                }
                Some(Operation::Delete(delete)) => batch.deletes.push(delete),
                None => break,
            }
        }
        batch
    }

    async fn write(&self, conn: &mut PgConnection) -> Result<Written, sqlx::Error> {
        insert_documents(conn, &self.inserts).await?;
        Ok(Written {
            inserted: insert_annotations(conn, &self.inserts).await?,
            edited: edit_annotations(conn, self.edits.values()).await?,
            deleted: delete_annotations(conn, &self.deletes).await?,
        })
    }
}

async fn insert_documents(conn: &mut PgConnection, inserts: &[Insert]) -> Result<(), sqlx::Error> {
    // sorted by address: two generators that meet on new pages then wait for each other in one
    // order, and cannot deadlock
    let titles: BTreeMap<String, &str> = inserts.iter().map(|insert| (normal(&insert.target_uri), insert.title.as_str())).collect();
    let (web_uris, titles): (Vec<String>, Vec<&str>) = titles.into_iter().unzip();
    sqlx::query(include_str!("insert_documents.sql")).bind(web_uris).bind(titles).execute(conn).await?;
    Ok(())
}

async fn insert_annotations(conn: &mut PgConnection, inserts: &[Insert]) -> Result<u64, sqlx::Error> {
    fn each<'a, T>(inserts: &'a [Insert], value: impl Fn(&'a Insert) -> T) -> Vec<T> {
        inserts.iter().map(value).collect()
    }
    let done = sqlx::query(include_str!("insert_annotations.sql"))
        .bind(each(inserts, |insert| insert.id))
        .bind(each(inserts, |insert| insert.created))
        .bind(each(inserts, |insert| insert.userid.as_str()))
        .bind(each(inserts, |insert| insert.groupid.as_str()))
        .bind(each(inserts, |insert| insert.text.as_str()))
        .bind(each(inserts, |insert| insert.tags.join(",")))
        .bind(each(inserts, |insert| insert.target_uri.as_str()))
        .bind(each(inserts, |insert| normal(&insert.target_uri)))
        .bind(each(inserts, |insert| insert.references.iter().map(Uuid::to_string).collect::<Vec<_>>().join(",")))
        .bind(each(inserts, |insert| insert.shared))
        .execute(conn)
        .await?;
    Ok(done.rows_affected())
}

async fn edit_annotations<'a>(conn: &mut PgConnection, edits: impl Iterator<Item = &'a Edit>) -> Result<u64, sqlx::Error> {
    let mut edits: Vec<&Edit> = edits.collect();
    if edits.is_empty() {
        return Ok(0);
    }
    edits.sort_by_key(|edit| edit.id);
    let done = sqlx::query(include_str!("edit_annotations.sql"))
        .bind(edits.iter().map(|edit| edit.id).collect::<Vec<_>>())
        .bind(edits.iter().map(|edit| edit.updated).collect::<Vec<_>>())
        .bind(edits.iter().map(|edit| edit.text.as_str()).collect::<Vec<_>>())
        .bind(edits.iter().map(|edit| edit.tags.join(",")).collect::<Vec<_>>())
        .execute(conn)
        .await?;
    Ok(done.rows_affected())
}

async fn delete_annotations(conn: &mut PgConnection, deletes: &[Remove]) -> Result<u64, sqlx::Error> {
    if deletes.is_empty() {
        return Ok(0);
    }
    let done = sqlx::query(include_str!("delete_annotations.sql"))
        .bind(deletes.iter().map(|delete| delete.id).collect::<Vec<_>>())
        .bind(deletes.iter().map(|delete| delete.updated).collect::<Vec<_>>())
        .execute(conn)
        .await?;
    Ok(done.rows_affected())
}

/// The generator's own addresses all have a normal form (a test says so); should one ever not, its
/// spelling is a page of its own.
fn normal(uri: &str) -> String {
    normalize(uri).unwrap_or_else(|_| uri.to_owned())
}
