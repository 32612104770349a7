//! Rebuilds that are under way, and how far they have come, for people, scripts and metrics.

use std::fmt;
use std::time::Duration;

use serde::Serialize;
use sqlx::PgConnection;

use super::{Rebuild, Stage, unfinished};
use crate::printable::printable;
use crate::{Error, reindex};

/// A rebuild, and how far it has come.
#[derive(Clone, Debug, Serialize)]
pub struct UnderWay {
    #[serde(flatten)]
    pub rebuild: Rebuild,
    /// Jobs of the filling that are through.
    pub through: u64,
    /// About how long the filling still takes, if that can be told.
    pub seconds_left: Option<f64>,
}

/// The rebuilds of these collections that are not over, and how far they have come.
pub async fn under_way(connection: &mut PgConnection, collections: &[&str]) -> Result<Vec<UnderWay>, Error> {
    let mut all = Vec::new();
    for rebuild in unfinished(connection, collections).await? {
        let through = match rebuild.stage {
            Stage::Create | Stage::Fill => 0,
            Stage::Drain => match rebuild.reindex {
                Some(id) => reindex::show(connection, id).await?.map_or(0, |filling| filling.through()),
                None => 0,
            },
            _ => rebuild.scheduled.max(0) as u64,
        };
        let left = (rebuild.keys() as f64 - through as f64) * rebuild.stage_seconds / through as f64;
        let seconds_left = (rebuild.stage == Stage::Drain && through > 0 && rebuild.driven).then_some(left);
        all.push(UnderWay { rebuild, through, seconds_left });
    }
    Ok(all)
}

impl UnderWay {
    /// How much of the filling is done, from 0 to 1.
    pub fn ratio(&self) -> f64 {
        match (self.rebuild.stage, self.rebuild.keys()) {
            (Stage::Create | Stage::Fill, _) => 0.0,
            (Stage::Drain, keys @ 1..) => self.through as f64 / keys as f64,
            _ => 1.0,
        }
    }
}

impl fmt::Display for UnderWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rebuild { collection, stage, new_index, drop_at, .. } = &self.rebuild;
        if let (Stage::Keep, Some(at)) = (stage, drop_at) {
            let (kept, at) = (self.rebuild.kept_index(), at.format("%Y-%m-%d %H:%M UTC"));
            return write!(f, "{kept} is kept in step until {at}; go back with: catchword rebuild {collection} --back");
        }
        write!(f, "{new_index} is made by {}, stage {stage}", printable(&self.rebuild.started_by))?;
        if *stage == Stage::Drain {
            write!(f, ", {} of {} through", self.through, self.rebuild.keys())?;
        }
        match self.seconds_left {
            _ if !self.rebuild.driven => {
                write!(
                    f,
                    "; nobody works on it; go on with: catchword rebuild {collection}, or undo it: catchword rebuild {collection} --abort"
                )
            }
            Some(seconds) => write!(f, ", about {} to go", humantime::format_duration(Duration::from_secs(seconds as u64))),
            None => Ok(()),
        }
    }
}
