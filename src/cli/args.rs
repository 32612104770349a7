//! The words of the command line. The scopes of `reindex` come from the configuration, so parsing has two phases: first the
//! configuration's path, then everything, with the scopes as flags.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

use crate::config::Config;

const CONFIG_VARIABLE: &str = "CATCHWORD_CONFIG";
const CONFIG_FILE: &str = "catchword.toml";

/// Headings of the help.
const WHAT: &str = "What to reindex, one of";
const EVERYWHERE: &str = "For every command";

/// Keeps Elasticsearch in step with Postgres, and proves it
///
/// A write leaves a job in its own transaction; once a minute a worker takes the due jobs, looks at both sides, writes what differs,
/// and deletes a job only when a later look saw both sides agree.
///
/// Addresses and secrets come from the environment: DATABASE_URL, ELASTICSEARCH_URL, ELASTICSEARCH_USERNAME and _PASSWORD, or
/// ELASTICSEARCH_API_KEY, ELASTICSEARCH_CA_FILE, CATCHWORD_INDEX_PREFIX; each secret also as …_FILE, the path of a file.
///
/// Exit codes: 0 done, 1 nothing to do or not well, 2 could not.
#[derive(Debug, Parser)]
#[command(name = "catchword", version, max_term_width = 100)]
pub(super) struct Args {
    /// The configuration: which tables, views and indices
    #[arg(
        long,
        global = true,
        help_heading = EVERYWHERE,
        env = CONFIG_VARIABLE,
        default_value = CONFIG_FILE,
        value_name = "FILE"
    )]
    pub config: PathBuf,
    /// Allow remote servers without verified TLS
    ///
    /// Without it, a server on another host is talked to only over TLS with a certificate that is checked.
    #[arg(long, global = true, help_heading = EVERYWHERE)]
    pub insecure: bool,
    /// How log lines are written, to standard error; how much: CATCHWORD_LOG=info, debug, warn
    #[arg(
        long,
        global = true,
        help_heading = EVERYWHERE,
        env = "CATCHWORD_LOG_FORMAT",
        value_enum,
        default_value = "text",
        value_name = "FORMAT"
    )]
    pub log: LogFormat,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum LogFormat {
    Text,
    Json,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Make the schema, attach every configured table, create its index and aliases
    ///
    /// Run it before every deploy: repeating it changes nothing. It adds the column catchword_revision and triggers to each table,
    /// under locks that give way to traffic after 2 s and are tried again for about a minute. Existing rows are not indexed by it; it
    /// says when `reindex --all` is due.
    Migrate(Migrate),
    /// Undo the attachment of a collection
    ///
    /// Takes away the triggers, the open jobs and dead letters and, if no view uses it, the column. From then on changes of the table
    /// no longer reach the index. The index stays; delete it with Elasticsearch's own means when no reader needs it. Asks first.
    Detach(Detach),
    /// Run the loop: wake every minute and work until nothing moves
    ///
    /// Any number of workers may run side by side; they never share a job. A tick takes up to 2,500 jobs at a time, some batches at
    /// once, as the configuration says. SIGTERM finishes the batch under way and exits 0 within 25 s; a second one exits at once.
    Worker(Worker),
    /// One pass over the queue, and what it did
    ///
    /// A document that is written by this pass is settled by the next one, because a write is never proof; --drain makes passes until
    /// nothing moves. A pass takes at most about 10 s and can run beside workers.
    ///
    /// Exit 0: done; 1: a collection is blocked, or Elasticsearch is away.
    Sync(Sync),
    /// Schedule many keys: a scope, a period, single keys, or everything
    ///
    /// Indexes nothing itself: a worker takes the jobs, and writes only where the two sides differ (see --anew). Scopes are the
    /// columns that the configuration names: scopes = { user = "userid" } gives --user X. Exactly one of a scope, --between, --ids
    /// and --all is given.
    ///
    /// A part runs before a whole, live writes before both, and two bulks of one kind take turns, one by one. Scheduling takes about
    /// 10 s per million keys, in transactions of 10,000. One that was cut short goes on with --resume.
    ///
    /// Exit 0: scheduled; 1: nothing matches; 2: could not.
    Reindex(Reindex),
    /// Where things stand: jobs due, waiting and dead, the index, the workers
    ///
    /// Counts up to 100,000 jobs of each kind, so it is quick on any queue; waits at most 3 s for Elasticsearch.
    ///
    /// Exit 0: well; 1: something is blocked, dead, expired or served by nobody, or Elasticsearch does not answer.
    Status(Status),
    /// What both sides know of one key, and what will happen to it
    ///
    /// Looks at the row, its document in the view, each index, the open jobs and the dead letters, and says in a sentence what they
    /// amount to. Changes nothing.
    ///
    /// Exit 0: in step; 1: not; 2: no key of this collection.
    Explain(Explain),
    /// Dead letters: what was given up, why, and what to do about it
    ///
    /// A job dies when its document was refused five times, is too large, cannot be built by the view, or has a key that cannot be
    /// one. Mend the cause (the row, the view, the mapping), then replay. A key that comes in step by a later write clears its own
    /// dead letters.
    #[command(subcommand)]
    Dead(Dead),
    /// Stop the work on a collection, until resume
    ///
    /// Nothing of it is claimed from the next pass on, and direct writes are left to the loop after at most 30 s. Writes go on leaving
    /// jobs, and no job is lost or expires of it. A pause survives restarts; status shows it.
    ///
    /// Exit 0: paused; 1: it was paused already.
    Pause(Pause),
    /// Go on with the work on a paused collection
    ///
    /// What was written meanwhile is taken from the next tick on, in its order.
    ///
    /// Exit 0: it goes on; 1: it was not paused.
    Resume(Resume),
    /// Who did what: pauses, replays, discards, reindexes, attachments, repairs
    ///
    /// Each line was committed together with what it tells of. The newest first.
    Journal(Journal),
}

#[derive(Debug, Subcommand)]
pub(super) enum Dead {
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
pub(super) struct Which {
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
pub(super) struct DeadList {
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
pub(super) struct DeadShow {
    /// The dead letter's number
    #[arg(value_name = "ID")]
    pub id: i64,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct DeadAct {
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

#[derive(Debug, clap::Args)]
pub(super) struct Pause {
    /// The collection; may be left out if there is only one
    #[arg(value_name = "COLLECTION")]
    pub collection: Option<String>,
    /// Why: whoever finds it paused will want to know
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct Resume {
    /// The collection; may be left out if there is only one
    #[arg(value_name = "COLLECTION")]
    pub collection: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct Journal {
    /// Only of this collection
    #[arg(value_name = "COLLECTION")]
    pub collection: Option<String>,
    /// How many lines
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=100_000))]
    pub limit: i64,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct Migrate {
    /// Print the SQL and the index, and change nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct Detach {
    /// The collection's name; it need not be in the configuration any more
    #[arg(value_name = "COLLECTION")]
    pub name: String,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct Worker {
    /// Serve /healthz, /readyz and /metrics here
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9090")]
    pub listen: SocketAddr,
}

#[derive(Debug, clap::Args)]
pub(super) struct Sync {
    /// Only these collections; none: all
    #[arg(value_name = "COLLECTION")]
    pub collections: Vec<String>,
    /// Passes until nothing moves any more
    #[arg(long)]
    pub drain: bool,
    /// The outcome as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct Reindex {
    /// The collection; may be left out if there is only one
    #[arg(value_name = "COLLECTION")]
    pub collection: Option<String>,
    /// Rows of a period, by the column that the configuration calls `period`
    ///
    /// The end is excluded. Dates or times, in UTC if no zone is said: 2026-11-16, 2026-11-16T12:30, 2026-11-16T12:30:00+02:00.
    #[arg(long, help_heading = WHAT, num_args = 2, value_names = ["FROM", "TO"])]
    pub between: Option<Vec<String>>,
    /// Single keys, separated by spaces, or by commas where keys are not text
    #[arg(long, help_heading = WHAT, num_args = 1.., allow_negative_numbers = true, value_name = "KEY")]
    pub ids: Option<Vec<String>>,
    /// Everything; asks first
    #[arg(long, help_heading = WHAT)]
    pub all: bool,
    /// Write even what agrees: after a change of the view
    ///
    /// With --all by a new floor, which makes every document stale at once and waits a moment for the table's writers; with a smaller
    /// scope by touching its rows, 2,500 in a transaction (their own triggers run, and writers of these rows wait for it).
    #[arg(long)]
    pub anew: bool,
    /// Also keys that the view does not return, to see that they are gone from the index
    ///
    /// With a scope: rows that are hidden, for instance by a soft delete. With --all also keys whose delete is recorded, with --ids also
    /// keys that have no row at all.
    #[arg(long)]
    pub hidden: bool,
    /// Say how many keys it would be, and schedule nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Go on with a reindex that was cut short: its number, or the newest
    ///
    /// It schedules just what was not scheduled yet. `catchword status` lists the unfinished ones.
    #[arg(long, num_args = 0..=1, value_name = "NUMBER", value_parser = number, conflicts_with_all = ["anew", "hidden", "dry_run", "tag"])]
    pub resume: Option<Option<i64>>,
    /// Who asks: kept with each job, shown by explain; the default names the scope
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

#[derive(Debug, clap::Args)]
pub(super) struct Status {
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
#[command(allow_missing_positional = true)]
pub(super) struct Explain {
    /// The collection; may be left out if there is only one
    #[arg(value_name = "COLLECTION", allow_negative_numbers = true)]
    pub collection: Option<String>,
    /// The key; an upper-case uuid is understood
    #[arg(value_name = "KEY", allow_negative_numbers = true)]
    pub key: String,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

fn number(text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| "a reindex has a number; write the collection before --resume".to_owned())
}

/// Parses in two phases. `--help` and bad words work without a configuration.
pub(super) fn parse(words: &[OsString]) -> Result<Args, clap::Error> {
    let first = first_phase(words);
    let mut command = Args::command();
    // in its place: mut_subcommand would move it to the end of the list
    for subcommand in command.get_subcommands_mut().filter(|known| known.get_name() == "reindex") {
        *subcommand = with_scopes(subcommand.clone(), &first.scopes);
    }
    let matches = command.try_get_matches_from_mut(words).map_err(|error| first.add_what_there_is(error))?;
    let mut args = Args::from_arg_matches(&matches).map_err(|error| error.format(&mut command))?;
    if let (Command::Reindex(options), Some(reindex)) = (&mut args.command, matches.subcommand_matches("reindex")) {
        options.scopes = given_scopes(reindex, &first.scopes);
    }
    Ok(args)
}

/// What the first phase finds: whether it is about `reindex`, and the scopes of all collections, or why they cannot be known.
struct FirstPhase {
    is_reindex: bool,
    scopes: BTreeSet<String>,
    unread: Option<String>,
}

fn first_phase(words: &[OsString]) -> FirstPhase {
    let (config, unread) = match Config::read(&config_path(words)) {
        Ok(config) => (Some(config), None),
        Err(error) => (None, Some(error.to_string())),
    };
    let collections = config.into_iter().flat_map(|config| config.collections);
    FirstPhase {
        is_reindex: words.iter().any(|word| word == "reindex"),
        scopes: collections.flat_map(|collection| collection.scopes.into_keys()).collect(),
        unread,
    }
}

/// Where the configuration is said to be. Looked for by hand: clap stops at `--help`, and at the first scope, which it does not know yet.
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
    fn add_what_there_is(&self, mut error: clap::Error) -> clap::Error {
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

fn with_scopes(mut reindex: clap::Command, scopes: &BTreeSet<String>) -> clap::Command {
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

fn given_scopes(matches: &ArgMatches, scopes: &BTreeSet<String>) -> Vec<(String, String)> {
    scopes.iter().filter_map(|scope| Some((scope.clone(), matches.get_one::<String>(&id(scope))?.clone()))).collect()
}

#[cfg(test)]
mod tests {
    use super::{Args, config_path};
    use clap::CommandFactory;
    use std::path::Path;

    #[test]
    fn the_words_are_consistent() {
        Args::command().debug_assert();
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
