//! A server that does not answer, told on top of a page.

use super::seen::Known;
use super::state::State;
use super::text::{Text, text};
use super::words::moment;

/// A server that is down.
pub(super) struct Down {
    pub state: State,
    /// In a few words.
    pub short: &'static str,
    pub what: String,
    pub why: Text,
    /// What the page shows instead.
    pub shown: String,
}

/// Those that are down, and since when.
pub(super) fn downs(known: &Known) -> Vec<Down> {
    let now = known.now.at;
    let since = |at: Option<chrono::DateTime<chrono::Utc>>| at.map_or(String::new(), |at| format!(" since {} UTC", moment(at, now).short));
    let postgres = known.now.postgres_down().map(|why| Down {
        state: State::Unknown,
        short: "Postgres does not answer, so nothing can be judged.",
        what: format!("Postgres does not answer{}.", since(known.postgres_down_since)),
        why: text(why),
        shown: match &known.last {
            Some(last) => format!("Below is what was known at {} UTC.", last.at.format("%H:%M:%S")),
            None => "Nothing is known of the queue yet.".into(),
        },
    });
    let elasticsearch = known.now.elasticsearch_down().map(|why| Down {
        state: State::NotWell,
        short: "Elasticsearch does not answer. What is saved waits, and nothing is lost.",
        what: format!("Elasticsearch does not answer{}.", since(known.elasticsearch_down_since)),
        why: text(why),
        shown: "Writes to Postgres go on, and their jobs wait.".into(),
    });
    postgres.into_iter().chain(elasticsearch).collect()
}
