//! The words of `catchword reindex`. Its scopes come from the configuration, so that parsing has two phases.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgMatches, CommandFactory, Subcommand};

use super::{Args, CONFIG_FILE, CONFIG_VARIABLE};
use crate::config::Config;

/// Headings of the help.
const WHAT: &str = "What to reindex, one of";
const FOLLOW: &str = "To follow one that was started, instead";

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_help_heading = FOLLOW, subcommand_value_name = "WHAT TO DO")]
pub(crate) struct Reindex {
    #[command(subcommand)]
    pub act: Option<ReindexAct>,
    /// The collection; may be left out if there is only one
    #[arg(value_name = "COLLECTION")]
    pub collection: Option<String>,
    /// Rows of a period, by the column that the configuration calls `period`
    ///
    /// The end is excluded. Dates or times, in UTC unless they have a zone: 2026-11-16, 2026-11-16T12:30, 2026-11-16T12:30:00+02:00.
    #[arg(long, help_heading = WHAT, num_args = 2, value_names = ["FROM", "TO"])]
    pub between: Option<Vec<String>>,
    /// Single keys, separated by spaces, or by commas where keys are not text
    #[arg(long, help_heading = WHAT, num_args = 1.., allow_negative_numbers = true, value_name = "KEY")]
    pub ids: Option<Vec<String>>,
    /// Everything; asks first
    #[arg(long, help_heading = WHAT)]
    pub all: bool,
    /// Rows of a condition in SQL, over the columns of the table; only for the role that owns catchword's schema
    ///
    /// For instance --where "updated < '2026-01-01' and length(text) > 1000". It is run in a transaction that can only read.
    #[arg(long = "where", help_heading = WHAT, value_name = "SQL")]
    pub condition: Option<String>,
    /// Write every document again, even where both sides agree: after a change of the view
    ///
    /// With --all it raises the collection's floor, which makes every document stale at once; for that it waits a moment for the table's
    /// writers. With a smaller scope it gives the rows new numbers, 2,500 in a transaction: it does not write to the rows, but writers of
    /// these rows wait for a moment.
    #[arg(long)]
    pub rewrite: bool,
    /// Also keys that the view does not return, to make sure that they are gone from the index
    ///
    /// With a scope, these are hidden rows, for instance after a soft delete. With --all also keys whose delete is recorded. With --ids
    /// also keys that have no row at all.
    #[arg(long)]
    pub hidden: bool,
    /// Print how many keys it would be, and schedule nothing
    #[arg(long)]
    pub dry_run: bool,
    /// The most keys that are scheduled in a second, such as 500/s; `catchword reindex rate` changes it
    #[arg(long, value_name = "N/s", value_parser = rate)]
    pub rate: Option<i32>,
    /// Wait until every key is settled, and show how far it is
    ///
    /// Ctrl-C ends the waiting; the reindex goes on. Exit 1 if some were given up (dead letters), or if it was cancelled.
    #[arg(long, conflicts_with = "dry_run")]
    pub wait: bool,
    /// Who asks: stored with each job and shown by explain; the default names the scope
    #[arg(long, value_name = "TEXT")]
    pub tag: Option<String>,
    /// Do not ask before --all
    #[arg(long)]
    pub yes: bool,
    /// The result as JSON
    #[arg(long)]
    pub json: bool,
    /// Scopes of the configuration that were given, with their values.
    #[arg(skip)]
    pub scopes: Vec<(String, String)>,
}

/// What can be done to a reindex that was started.
#[derive(Debug, Subcommand)]
pub(crate) enum ReindexAct {
    /// The reindexes, those that are not over first, the newest first
    List(ReindexList),
    /// How far one is: scheduled, settled, dead, how fast, and about how long it still takes
    ///
    /// Exit 0: there it is; 1: there is no such reindex. With --wait also 1 if some keys were given up, or if it was cancelled.
    Show(ReindexShow),
    /// End one: its jobs are deleted
    ///
    /// Jobs that others scheduled for the same keys stay. A reindex with --rewrite has given its rows new numbers, which the index must get:
    /// its open jobs stay and are worked on, and only the rest is not scheduled. One of everything with --rewrite cannot be cancelled, because
    /// every document counts as old since it began: pause it, or slow it down.
    ///
    /// Exit 0: cancelled; 1: it was over already.
    Cancel(ReindexOne),
    /// Let one rest: no more of it is scheduled
    ///
    /// What is open, at most 100,000 jobs, is still worked on. To stop all work on a collection: catchword pause.
    ///
    /// Exit 0: paused; 1: it was paused already, or all of it is scheduled.
    Pause(ReindexOne),
    /// Go on with one that rests
    ///
    /// Exit 0: it goes on; 1: it was not paused.
    Resume(ReindexOne),
    /// Change how many keys a second are scheduled at most
    ///
    /// It counts at once: a limited reindex has about two seconds of work in the queue.
    ///
    /// Exit 0: changed; 1: all of it is scheduled already.
    Rate(ReindexRate),
}

#[derive(Debug, clap::Args)]
pub(crate) struct ReindexList {
    /// Only of this collection
    #[arg(value_name = "COLLECTION")]
    pub collection: Option<String>,
    /// How many at most
    #[arg(long, value_name = "NUMBER", default_value_t = 20, value_parser = clap::value_parser!(i64).range(1..=1000))]
    pub limit: i64,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ReindexShow {
    /// Its number
    #[arg(value_name = "ID", value_parser = id_of_reindex)]
    pub id: i64,
    /// Wait until every key is settled, and show how far it is
    #[arg(long)]
    pub wait: bool,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ReindexOne {
    /// Its number
    #[arg(value_name = "ID", value_parser = id_of_reindex)]
    pub id: i64,
    /// The result as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ReindexRate {
    /// Its number
    #[arg(value_name = "ID", value_parser = id_of_reindex)]
    pub id: i64,
    /// Keys a second, such as 500 or 500/s; none: no limit
    #[arg(value_name = "N/s|none", value_parser = rate_or_none)]
    pub rate: Rate,
    /// The result as JSON
    #[arg(long)]
    pub json: bool,
}

/// Keys a second; none: no limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate(pub Option<i32>);

fn rate_or_none(text: &str) -> Result<Rate, String> {
    if text == "none" { Ok(Rate(None)) } else { rate(text).map(|rate| Rate(Some(rate))) }
}

fn rate(text: &str) -> Result<i32, String> {
    let number = text.strip_suffix("/s").unwrap_or(text).trim();
    let rate = number.parse().ok().filter(|rate| (1..=1_000_000).contains(rate));
    rate.ok_or_else(|| "write keys a second, from 1 to 1000000: 500 or 500/s".to_owned())
}

fn id_of_reindex(text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| "it is a number; catchword reindex list shows it".to_owned())
}

pub(super) fn number(text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| "it is a number; write the collection before --resume".to_owned())
}

/// What the first phase finds: whether it is about `reindex`, and the scopes of all collections, or why they cannot be known.
pub(super) struct FirstPhase {
    is_reindex: bool,
    pub scopes: BTreeSet<String>,
    unread: Option<String>,
}

pub(super) fn first_phase(words: &[OsString]) -> FirstPhase {
    let (config, unread) = match Config::read(&config_path(words)) {
        Ok(config) => (Some(config), None),
        Err(error) => (None, Some(error.to_string())),
    };
    let collections = config.into_iter().flat_map(|config| config.collections);
    FirstPhase {
        is_reindex: words.iter().any(|word| word == "reindex"),
        scopes: collections.flat_map(|collection| collection.flags().into_iter().map(str::to_owned).collect::<Vec<_>>()).collect(),
        unread,
    }
}

/// Where the configuration is. Looked for by hand: clap stops at `--help`, and at the first scope, which it does not know yet.
fn config_path(words: &[OsString]) -> PathBuf {
    let mut words = words.iter().skip(1);
    while let Some(word) = words.next() {
        if word == "--config" {
            return words.next().map_or_else(PathBuf::new, PathBuf::from);
        }
        if let Some(path) = word.as_bytes().strip_prefix(b"--config=") {
            return PathBuf::from(OsStr::from_bytes(path));
        }
    }
    std::env::var_os(CONFIG_VARIABLE).map_or_else(|| PathBuf::from(CONFIG_FILE), PathBuf::from)
}

impl FirstPhase {
    /// A flag that reindex does not know may be a scope that the configuration does not name, or one that could not be read.
    pub fn add_what_there_is(&self, mut error: clap::Error) -> clap::Error {
        if !self.is_reindex || error.kind() != ErrorKind::UnknownArgument {
            return error;
        }
        if let Some(why) = &self.unread {
            let sentence = format!("the scopes of reindex come from the configuration, and there is none: {why}");
            return Args::command().error(ErrorKind::UnknownArgument, sentence);
        }
        let scopes = self.scopes.iter().map(|scope| format!("--{scope} X, ")).collect::<String>();
        let tip = format!(
            "there is {scopes}--between A B, --ids …, --all; a scope is named in the configuration: scopes = {{ user = \"userid\" }}"
        );
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
        error
    }
}

/// The id of a scope's argument: with a dot, so that no other argument has it.
fn id(scope: &str) -> String {
    format!("scope.{scope}")
}

pub(super) fn with_scopes(mut reindex: clap::Command, scopes: &BTreeSet<String>) -> clap::Command {
    for scope in scopes {
        let help = format!("Rows of one {scope} (a scope of the configuration)");
        reindex = reindex.arg(
            Arg::new(id(scope))
                .long(scope.clone())
                .value_name(scope.to_uppercase())
                .help_heading(WHAT)
                .display_order(0)
                .allow_negative_numbers(true)
                .help(help),
        );
    }
    reindex
}

pub(super) fn given_scopes(matches: &ArgMatches, scopes: &BTreeSet<String>) -> Vec<(String, String)> {
    scopes.iter().filter_map(|scope| Some((scope.clone(), matches.get_one::<String>(&id(scope))?.clone()))).collect()
}

#[cfg(test)]
mod tests {
    use super::{config_path, rate};
    use std::path::Path;

    #[test]
    fn a_rate_is_read_as_people_write_it() {
        assert_eq!((rate("500"), rate("500/s"), rate("1 /s")), (Ok(500), Ok(500), Ok(1)));
        for wrong in ["", "0", "-1", "500/m", "1000001", "all", "1.5"] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_configuration_is_found_behind_a_scope_and_beside_help() {
        for words in [
            "catchword reindex --user x --config a.toml",
            "catchword --config=a.toml reindex --help",
            "catchword reindex --help --config a.toml",
        ] {
            let words: Vec<_> = words.split(' ').map(Into::into).collect();
            assert_eq!(config_path(&words), Path::new("a.toml"));
        }
    }
}
