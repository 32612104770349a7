//! The words of `catchword audit`.

use super::reindex::number;

#[derive(Debug, clap::Args)]
pub(crate) struct Audit {
    /// The collection; without it all that are configured, one after the other
    #[arg(value_name = "COLLECTION")]
    pub collection: Option<String>,
    /// Schedule what differs, with the tag audit; a worker fixes it
    #[arg(long)]
    pub repair: bool,
    /// Compare the documents themselves too, where the versions agree
    ///
    /// Reads every document on both sides, so it takes several times as long. With --repair a document that differs is written again under
    /// a new revision of its row.
    #[arg(long)]
    pub content: bool,
    /// Only rows of the period since then: a date or a time, in UTC unless it has a zone
    ///
    /// Uses the column that the configuration calls `period`, and includes the deletes since then. It does not read the whole index, so it
    /// does not find documents without a row.
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Only a random share of the keys: 5 or 5%
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub sample: Option<f64>,
    /// Only this index of the collection, if a rebuild gave it two
    #[arg(long, value_name = "NAME", requires = "collection")]
    pub index: Option<String>,
    /// At most this many keys a second; without it as fast as the servers are
    #[arg(long, value_name = "KEYS", value_parser = rate)]
    pub rate: Option<u32>,
    /// Continue an audit that was interrupted: its number, or the newest
    #[arg(long, num_args = 0..=1, value_name = "NUMBER", value_parser = number, conflicts_with_all = ["repair", "content", "since", "sample", "index"])]
    pub resume: Option<Option<i64>>,
    /// The result as JSON
    #[arg(long)]
    pub json: bool,
}

/// A share of up to 100 per cent, as a number from 0 to 1.
fn percent(text: &str) -> Result<f64, String> {
    let share = text.trim_end_matches('%').trim().parse::<f64>().ok().filter(|percent| *percent > 0.0 && *percent <= 100.0);
    share.map(|percent| percent / 100.0).ok_or_else(|| "it is a share above 0 and up to 100 per cent; write 5 or 5%".to_owned())
}

fn rate(text: &str) -> Result<u32, String> {
    text.parse().ok().filter(|keys| *keys > 0).ok_or_else(|| "it is a whole number, at least 1 key a second".to_owned())
}
