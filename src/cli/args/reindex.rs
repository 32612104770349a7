//! The words of `catchword reindex`. Its scopes come from the configuration, so that parsing has two phases.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgMatches, CommandFactory};

use super::{Args, CONFIG_FILE, CONFIG_VARIABLE};
use crate::config::Config;

/// Heading of the help.
const WHAT: &str = "What to reindex, one of";

#[derive(Debug, clap::Args)]
pub(crate) struct Reindex {
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
    /// Continue a reindex that was interrupted: its number, or the newest
    ///
    /// It schedules exactly what was not scheduled yet. `catchword status` lists the unfinished ones.
    #[arg(long, num_args = 0..=1, value_name = "NUMBER", value_parser = number, conflicts_with_all = ["rewrite", "hidden", "dry_run", "tag"])]
    pub resume: Option<Option<i64>>,
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
    use super::config_path;
    use std::path::Path;

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
