//! The words of `catchword dead`.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum Dead {
    /// The dead letters, grouped by error
    ///
    /// Exit 0: there are none; 1: there are some.
    List(DeadList),
    /// One dead letter, whole
    ///
    /// `catchword explain` says more about its key.
    Show(DeadShow),
    /// Schedule dead letters again, with no attempts charged
    ///
    /// Exit 0: scheduled; 1: none fits.
    Replay(DeadAct),
    /// Throw dead letters away; asks first
    ///
    /// Their keys stay as they are: what is missing in the index stays missing until the next write or reindex of the key.
    ///
    /// Exit 0: thrown away; 1: none fits.
    Discard(DeadAct),
}

/// Which dead letters; everything that is given must fit.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Which {
    /// Only of this collection
    #[arg(long, value_name = "NAME")]
    pub collection: Option<String>,
    /// Only with this reason: refused, unbuildable, too_large, bad_key, expired, ahead
    #[arg(long, value_name = "REASON", value_parser = ["refused", "unbuildable", "too_large", "bad_key", "expired", "ahead"], hide_possible_values = true)]
    pub reason: Option<String>,
    /// Only with this tag
    #[arg(long, value_name = "TEXT")]
    pub tag: Option<String>,
    /// Only those that died since: a date or a time, in UTC if no zone is said
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct DeadList {
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
pub(in crate::cli) struct DeadShow {
    /// The dead letter's number
    #[arg(value_name = "ID")]
    pub id: i64,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct DeadAct {
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
