//! A patient look at both sides of many keys: an index that does not answer for a moment does not end an audit of hours.

use std::time::Duration;

use super::Run;
use crate::elastic::{Answer, Target};
use crate::look::{self, AtElasticsearch, Seen};
use crate::{Error, database, elastic};

/// How long to wait before an index that did not answer is asked again: about a minute in all, then the audit gives up and can be resumed.
const WAITS: [u64; 6] = [1, 2, 4, 8, 16, 30];

impl Run<'_> {
    /// Looks at both sides of these keys.
    pub(super) async fn look<'k>(&self, targets: &[Target], keys: &[&'k str]) -> Result<Seen<'k>, Error> {
        let mut look = AtElasticsearch::of(&self.collection, &self.context.pool, keys).await?;
        for target in targets {
            let mut waits = WAITS.iter();
            while let Err(answer) = look.ask(&self.context.elastic, target, look::LIMIT).await {
                let passes = matches!(answer, Answer::Unknown(_) | Answer::Unreachable(_) | Answer::Unavailable(_) | Answer::Overloaded(_));
                let Some(wait) = waits.next().filter(|_| passes) else {
                    return Err(elastic::Error::Request { doing: format!("look at index {target}"), answer }.into());
                };
                self.check_stop()?;
                tokio::time::sleep(Duration::from_secs(*wait)).await;
                look.ask_again();
            }
        }
        let mut transaction = database::begin(&self.context.pool).await?;
        let seen = look.then_postgres(&self.collection, &mut transaction).await?;
        transaction.commit().await?;
        Ok(seen)
    }
}
