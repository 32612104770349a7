//! From keys to what Postgres wants of them: quickly for many callers together, or carefully for one alone.

use std::collections::{BTreeMap, HashMap};

use sqlx::PgConnection;

use crate::Error;
use crate::collection::{Collection, Document, Now, Want};
use crate::context::Context;

/// What Postgres wants of the keys now, or why a direct write cannot be made of it.
#[derive(Debug)]
pub(super) enum Read {
    Found(HashMap<String, Now>),
    /// The collection has other indices than this process knows: what is written to an index must be read after it was made a target.
    OtherTargets,
    Failed(String),
}

/// One short statement. Fails for all if one row cannot be built, or takes long.
pub(super) async fn quickly(context: &Context, collection: &Collection, keys: &[&str]) -> Read {
    let read = async {
        let mut connection = context.quick_pool.acquire().await?;
        collection.now(&mut connection, keys).await
    };
    match read.await {
        Ok(Some(found)) => Read::Found(found),
        Ok(None) => Read::OtherTargets,
        Err(error) => Read::Failed(error.to_string()),
    }
}

/// As the loop reads: large documents and those that are hard to build have their time.
pub(super) async fn carefully(context: &Context, collection: &Collection, keys: &[&str]) -> Read {
    let read = async {
        let mut connection = context.pool.acquire().await?;
        // asked before the documents are read: what is written to an index was committed after the index was made a target
        match collection.targets_are_current(&mut connection).await? {
            true => documents(collection, &mut connection, keys).await,
            false => Ok(Read::OtherTargets),
        }
    };
    read.await.unwrap_or_else(|error: Error| Read::Failed(error.to_string()))
}

/// The revisions of these keys; of none, if Postgres does not say at once.
pub(super) async fn revisions(context: &Context, collection: &Collection, keys: &[&str]) -> BTreeMap<String, i64> {
    let read = async {
        let mut connection = context.quick_pool.acquire().await?;
        collection.numbers(&mut connection, keys).await
    };
    read.await.unwrap_or_else(|error| {
        tracing::debug!("the revisions of what was stored could not be read: {error}");
        BTreeMap::new()
    })
}

async fn documents(collection: &Collection, connection: &mut PgConnection, keys: &[&str]) -> Result<Read, Error> {
    let (built, unbuildable) = collection.bodies(connection, keys).await?;
    if let Some(fault) = unbuildable.into_iter().next() {
        return Ok(Read::Failed(fault.error));
    }
    let mut found = HashMap::with_capacity(keys.len());
    for built in built {
        match built.document {
            Document::Body(bytes) => _ = found.insert(built.key, Now::Document(built.version, bytes)),
            Document::TooLarge(_) | Document::Later(_) => {
                return Ok(Read::Failed("the documents are too large for a direct write".into()));
            }
        }
    }
    let gone: Vec<&str> = keys.iter().copied().filter(|key| !found.contains_key(*key)).collect();
    if !gone.is_empty() {
        let (wants, _) = collection.wants(connection, &gone).await?;
        for key in gone {
            let now = match wants.get(key) {
                Some(Want::Hidden(version) | Want::Deleted(version)) => Now::Gone(*version),
                Some(Want::Never) => Now::Never,
                Some(Want::Present(_)) | None => return Ok(Read::Failed("the row changed meanwhile".into())),
            };
            found.insert(key.to_owned(), now);
        }
    }
    Ok(Read::Found(found))
}
