//! The words of `catchword dead`.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum Dead {
    /// The dead letters, grouped by error
    ///
    /// Exit 0: there are none; 1: there are some.
    List(DeadList),
    /// One dead letter in full
    ///
    /// `catchword explain` says more about its key.
    Show(DeadShow),
    /// Schedule dead letters again, as if never tried
    ///
    /// Exit 0: scheduled; 1: none matches.
    Replay(DeadAct),
    /// Give up the jobs of one key by hand; asks first
    ///
    /// For a document that does harm, such as one that makes Elasticsearch fail, if you do not want to wait until catchword finds it. The
    /// row stays as it is, and so does the document in the index. The key's next write schedules a new job.
    ///
    /// Exit 0: buried; 1: the key has no job.
    Bury(DeadBury),
    /// Delete dead letters; asks first
    ///
    /// Their keys stay as they are: what is missing in the index stays missing until the next write or reindex of the key.
    ///
    /// Exit 0: deleted; 1: none matches.
    Discard(DeadAct),
}

/// Which dead letters; everything that is given must match.
#[derive(Debug, clap::Args)]
pub(crate) struct Which {
    /// Only of this collection
    #[arg(long, value_name = "NAME")]
    pub collection: Option<String>,
    /// Only with this reason: refused, unbuildable, too_large, bad_key, expired, ahead, unanswered, by_hand
    #[arg(long, value_name = "REASON", value_parser = ["refused", "unbuildable", "too_large", "bad_key", "expired", "ahead", "unanswered", "by_hand"], hide_possible_values = true)]
    pub reason: Option<String>,
    /// Only with this tag
    #[arg(long, value_name = "TEXT")]
    pub tag: Option<String>,
    /// Only those given up since then: a date or a time, in UTC unless it has a zone
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct DeadList {
    #[command(flatten)]
    pub which: Which,
    /// One by one instead of grouped: the newest 1,000
    #[arg(long)]
    pub each: bool,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct DeadShow {
    /// The dead letter's number
    #[arg(value_name = "ID")]
    pub id: i64,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
#[command(allow_missing_positional = true)]
pub(crate) struct DeadBury {
    /// The collection; may be left out if there is only one
    #[arg(value_name = "COLLECTION", allow_negative_numbers = true)]
    pub collection: Option<String>,
    /// The key; a uuid may be in upper case. Or that of a touch, such as document_id=7
    #[arg(value_name = "KEY", allow_negative_numbers = true)]
    pub key: String,
    /// Why it is given up, for whoever finds the dead letter
    #[arg(long, value_name = "TEXT", default_value = "buried by hand")]
    pub why: String,
    /// Print what would be buried, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    /// The result as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct DeadAct {
    /// The dead letters' numbers
    #[arg(value_name = "ID", conflicts_with = "all")]
    pub ids: Vec<i64>,
    #[command(flatten)]
    pub which: Which,
    /// All of them
    #[arg(long)]
    pub all: bool,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    /// The result as JSON
    #[arg(long)]
    pub json: bool,
}
