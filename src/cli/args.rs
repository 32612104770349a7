//! The words of the command line. The scopes of `reindex` come from the configuration, so parsing has two phases: first the
//! configuration's path, then everything, with the scopes as flags.

mod audit;
mod dead;
mod rebuild;
mod reindex;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

pub(super) use audit::Audit;
pub(super) use dead::{Dead, DeadAct, DeadBury, DeadList, DeadShow, Which};
pub(super) use rebuild::Rebuild;
pub(super) use reindex::Reindex;

const CONFIG_VARIABLE: &str = "CATCHWORD_CONFIG";
const CONFIG_FILE: &str = "catchword.toml";

/// Heading of the help.
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
    /// Exit 0: done, or nothing was due; 1: a collection is blocked, Elasticsearch is down, or jobs are due and none of them moved, and
    /// why.
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
    /// Replace an index by a new one, for instance with another mapping, while writes and readers go on
    ///
    /// Makes a new index, keeps both in step from then on, fills the new one through the queue, compares it with Postgres key by key,
    /// moves the readers' alias in one step, and keeps the old one in step for --keep, so that --back is one command and as fresh.
    ///
    /// It works the queue itself; workers that run help. Interrupted or killed, the same command goes on where it was. Costs a look and
    /// a write per document, disk for a second copy, and two writes instead of one until the old index is dropped.
    ///
    /// Change the mapping first, then the view: until the old index is dropped, every document must fit into both.
    ///
    /// Exit 0: readers see the new index; 1: nothing was done; 2: could not, and how to go on.
    Rebuild(Rebuild),
    /// Where things stand: jobs due, waiting and dead, the index, the workers
    ///
    /// Counts up to 100,000 jobs of each kind, so it is quick on any queue; waits at most 3 s for Elasticsearch.
    ///
    /// Exit 0: well; 1: something is blocked, dead, expired or served by nobody, or Elasticsearch does not answer.
    Status(Status),
    /// Is all well? The alarms' own judgements, for cron and Nagios
    ///
    /// Judges what the Prometheus alarms judge, from Postgres and Elasticsearch alone: workers, the queue's length and age, dead letters,
    /// pauses, what is blocked or ahead, what holds vacuum back, and whether too many changes of the last hours were seen late. The first line
    /// is the summary; each further one says what is wrong and what to do. Answers within about seven seconds, whatever the servers do.
    ///
    /// Exit 0: well; 1: unwell; 2: could not tell, for instance because Postgres is away.
    Check(Check),
    /// Is everything in place that the promises rest on? To be run before the first worker, and after changes
    ///
    /// Looks at the servers, settings, triggers, sequence, rights, view, index, aliases and mapping of every collection, and says of each
    /// whether it is ok, or what to do. Changes nothing. Reads one batch of documents per collection.
    ///
    /// Exit 0: nothing failed; 1: something did; 2: could not look.
    Doctor(Doctor),
    /// What both sides know of one key, and what will happen to it
    ///
    /// Looks at the row, its document in the view, each index, the open jobs and the dead letters, and says in a sentence what they
    /// amount to. Changes nothing.
    ///
    /// Exit 0: in step; 1: not; 2: no key of this collection.
    Explain(Explain),
    /// Compare everything, both ways, while traffic flows
    ///
    /// Every key of the table is looked at in the index, and every document of the index in the table. A difference counts only if it is
    /// still there when looked at again, nothing was written to its key meanwhile, and no job is open for it: so there is no false alarm
    /// under load. With --repair what differs is scheduled, and a worker heals it.
    ///
    /// A million documents take about a minute, and little memory; no transaction is longer than a few seconds. One that was cut short goes
    /// on with --resume.
    ///
    /// Exit 0: in step; 1: not; 2: could not tell.
    Audit(Audit),
    /// Dead letters: what was given up, why, and what to do about it
    ///
    /// A job dies when its document was refused five times, is too large, cannot be built by the view, makes Elasticsearch fail, or has
    /// a key that cannot be one. Mend the cause (the row, the view, the mapping), then replay. A key that comes in step by a later write clears its own
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
    /// Give a copy of a database indices of its own
    ///
    /// A copy has the id of its original, and is refused while the original is there. This gives it a new id and forgets the original's
    /// indices. Set another CATCHWORD_INDEX_PREFIX first, so that the names are free; then fill them: catchword reindex --all.
    #[arg(long, conflicts_with = "dry_run")]
    pub new_installation: bool,
    /// Let a copy of a database take the original's indices
    ///
    /// For a database that takes the original's place, as after an upgrade by dump. From then on the original is refused: nothing of it
    /// reaches the indices any more. An audit with content is asked for, and a worker runs it.
    #[arg(long, conflicts_with_all = ["dry_run", "new_installation"])]
    pub take_over: bool,
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
    /// What its passes are called in the log and in traces
    #[arg(long, value_name = "NAME", default_value = "sync")]
    pub name: String,
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
pub(super) struct Status {
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct Check {
    /// As JSON, with everything that was judged
    #[arg(long, conflicts_with = "quiet")]
    pub json: bool,
    /// Say nothing when all is well: cron sends what is said by mail
    #[arg(long)]
    pub quiet: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct Doctor {
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

/// Parses in two phases. `--help` and bad words work without a configuration.
pub(super) fn parse(words: &[OsString]) -> Result<Args, clap::Error> {
    let first = reindex::first_phase(words);
    let mut command = Args::command();
    // in its place: mut_subcommand would move it to the end of the list
    for subcommand in command.get_subcommands_mut().filter(|known| known.get_name() == "reindex") {
        *subcommand = reindex::with_scopes(subcommand.clone(), &first.scopes);
    }
    let matches = command.try_get_matches_from_mut(words).map_err(|error| first.add_what_there_is(error))?;
    let mut args = Args::from_arg_matches(&matches).map_err(|error| error.format(&mut command))?;
    if let (Command::Reindex(options), Some(given)) = (&mut args.command, matches.subcommand_matches("reindex")) {
        options.scopes = reindex::given_scopes(given, &first.scopes);
    }
    Ok(args)
}

#[cfg(test)]
mod tests {
    use super::Args;
    use clap::CommandFactory;

    #[test]
    fn the_words_are_consistent() {
        Args::command().debug_assert();
    }
}
