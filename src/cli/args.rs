//! The words of the command line. The scopes of `reindex` come from the configuration, so parsing has two phases: first the
//! configuration's path, then everything, with the scopes as flags.

mod audit;
mod dead;
mod key;
mod rebuild;
mod reindex;
mod serve;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

pub(super) use audit::Audit;
pub(super) use dead::{Dead, DeadAct, DeadBury, DeadList, DeadShow, Which};
pub(super) use key::{Key, KeyCreate, KeyList, KeyRevoke};
pub(super) use rebuild::Rebuild;
pub(super) use reindex::{Rate, Reindex, ReindexAct, ReindexList, ReindexOne, ReindexRate, ReindexShow};
pub(super) use serve::Serve;

const CONFIG_VARIABLE: &str = "CATCHWORD_CONFIG";
const CONFIG_FILE: &str = "catchword.toml";

/// Heading of the help.
const EVERYWHERE: &str = "For every command";

/// Keeps Elasticsearch in step with Postgres, and proves it
///
/// A write schedules a job in its own transaction. A worker takes it at once, writes what differs, and deletes it only when a later
/// look has seen both sides agree. Once a minute it takes whatever is still due.
///
/// Addresses and secrets come from the environment: DATABASE_URL, ELASTICSEARCH_URL, ELASTICSEARCH_USERNAME and _PASSWORD, or
/// ELASTICSEARCH_API_KEY, ELASTICSEARCH_CA_FILE, CATCHWORD_INDEX_PREFIX. Each secret may also be given as …_FILE, the path of a file.
///
/// Exit codes: 0: done. 1: nothing to do, or unhealthy. 2: failed; the reason is on standard error.
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
    /// Without it, a server on another host is used only over TLS, and its certificate is checked.
    #[arg(long, global = true, help_heading = EVERYWHERE)]
    pub insecure: bool,
    /// Format of the log lines on standard error. CATCHWORD_LOG=warn, info or debug sets how much is logged
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
    /// Write a first view, mapping and configuration for a table
    ///
    /// Reads the table's columns, keys, foreign keys and indexes, and prints three texts: a migration with the view that makes the
    /// documents, the mapping of the index, and a collection for the configuration. Rows that the table refers to are in the document by
    /// their names; rows that refer to it are in it where an index finds them. What looks like a secret or like personal data is left out.
    /// Comments say why each choice was made. Change what you like: it is a beginning.
    ///
    /// Needs DATABASE_URL and nothing else. Changes nothing in the database, and without --write no file either. A table that cannot be
    /// attached is refused, with what to do.
    ///
    /// Afterwards: psql -1 -f NAME.sql, catchword migrate, catchword doctor, catchword reindex NAME --all.
    ///
    /// Exit 0: printed, or written; 1: all of it is written already; 2: refused or failed, and nothing was written.
    Init(Init),
    /// Create the schema, attach every configured table, create its index and aliases
    ///
    /// Run it in every deploy, before the new workers: repeating it changes nothing. It adds the column catchword_revision and triggers
    /// to each table. A lock that it does not get within 2 s is given up, so that traffic never waits for long, and tried again for about
    /// a minute. It does not index existing rows; it prints when `reindex --all` is due.
    Migrate(Migrate),
    /// Undo the attachment of a collection
    ///
    /// Removes the triggers, the open jobs, the dead letters and, if no view uses it, the column. From then on, changes of the table do
    /// not reach the index. The index stays; delete it in Elasticsearch when no reader needs it any more. Asks first.
    Detach(Detach),
    /// Run the loop: wake every minute and work until nothing moves
    ///
    /// Any number of workers may run at the same time; no two ever work on the same job. A batch has up to 2,500 jobs; the
    /// configuration sets how many batches run at once. On SIGTERM the worker finishes its batch and exits 0 within 25 s; on a second
    /// SIGTERM it exits at once.
    Worker(Worker),
    /// Serve the API and the console, for services and people
    ///
    /// The API is below /api/v1, and /api/v1/openapi.json describes it. The console is a web page that shows how things stand and does what
    /// an operator does. Both do what the commands do, and the journal says who did it.
    ///
    /// Whoever asks needs an API key (catchword key create), unless --open lets people on this machine look, or a proxy says who they are.
    /// Run it as a role that may do what it offers: an operator of migrations/grants.sql, or a reader with --read-only. It works on no job:
    /// workers do. It answers, and says so, while Postgres or Elasticsearch is down. On SIGTERM it answers what is under way and exits 0.
    Serve(Serve),
    /// API keys: make, list and revoke them
    ///
    /// A key says who asks catchword serve, and what that one may do.
    #[command(subcommand)]
    Key(Key),
    /// Make one pass over the queue, and print what it did
    ///
    /// A job whose document is written by this pass is settled by the next one, because a write is never proof. --drain makes passes
    /// until nothing moves. A pass takes at most about 10 s, and may run while workers do.
    ///
    /// Exit 0: done, or nothing was due; 1: a collection is blocked, Elasticsearch is down, or jobs are due and none of them moved; the
    /// reason is printed.
    Sync(Sync),
    /// Schedule many keys: a scope, a period, single keys, or everything
    ///
    /// It indexes nothing itself: a worker takes the jobs, and writes only where the two sides differ (see --rewrite). Scopes are columns
    /// that the configuration names: scopes = { user = "userid" } gives --user X. Give exactly one of a scope, --between, --ids,
    /// --all and --where.
    ///
    /// Workers take live writes first, then partial reindexes, then full ones (--all). Every fourth batch goes to a reindex, so it
    /// always makes progress. Two reindexes of the same priority take turns, job by job.
    ///
    /// It writes down what is to be done, schedules the first 10,000 keys, and returns. Workers schedule the rest while they work: at most
    /// 100,000 jobs of one reindex are open, and it goes on when the terminal is closed. Without a worker, catchword sync --drain does it.
    /// --wait waits for the end; list, show, cancel, pause, resume and rate follow it.
    ///
    /// Exit 0: started; 1: nothing matches; 2: failed.
    Reindex(Reindex),
    /// Replace an index by a new one, for instance with another mapping, while writes and searches go on
    ///
    /// Creates a new index and keeps both in step from then on. Fills the new one through the queue, compares it with Postgres key by
    /// key, and moves the readers' alias in one step. Then keeps the old index in step for --keep, so that --back is one command.
    ///
    /// It works on the queue itself, and running workers help. If it is interrupted or killed, run the same command again: it continues
    /// where it was. It costs a look and a write per document, disk space for a second copy, and two writes instead of one until the old
    /// index is dropped.
    ///
    /// Change the mapping first, then the view: until the old index is dropped, every document must fit into both.
    ///
    /// Exit 0: readers see the new index; 1: nothing was done; 2: failed; how to go on is printed.
    Rebuild(Rebuild),
    /// Where things stand: jobs due, waiting and dead, the index, the workers
    ///
    /// Counts up to 10,000 jobs of each priority exactly and estimates above that, so it is quick on any queue. Waits at most 3 s for
    /// Elasticsearch and 8 s for Postgres.
    ///
    /// With --watch the screen renews itself every second: what is due, how old, how fast it goes, the last hour, and what is running.
    /// Press q to leave.
    ///
    /// Exit 0: nothing needs a person, though jobs may be due; 1: something is blocked, at a standstill, dead, expired or not migrated, an
    /// index lost writes, an audit found what is not scheduled for repair, jobs have been due for two minutes and no worker serves them,
    /// jobs are of a collection that is not configured, or a server does not answer.
    Status(Status),
    /// What each minute was like: the queue, jobs and documents, and how fresh search was
    ///
    /// A worker writes a line per collection and minute, and keeps it for 8 days. Shown are the last, the mean and the highest value of the
    /// span, and a bar for each step of time. A gap between the bars: no worker was there. Counts are per minute. Needs Postgres only.
    ///
    /// Exit 0: printed; 1: there is no history of that time yet.
    History(History),
    /// Is everything all right? Judges what the alarms judge, for cron and Nagios
    ///
    /// Needs no Prometheus, only Postgres and Elasticsearch. It checks the workers, the length and age of the queue, dead letters, pauses,
    /// what is blocked or ahead, the audits, what holds vacuum back, and whether too many changes of the last hours were seen late. The
    /// first line is the summary; each further line says what is wrong and what to do. It finishes within about seven seconds even if a
    /// server does not respond.
    ///
    /// Exit 0: well; 1: unwell; 2: could not tell, for instance because Postgres is down.
    Check(Check),
    /// Is everything set up right? Run it before the first worker, and after changes
    ///
    /// Checks the servers, settings, triggers, sequence, rights, view, index, aliases and mapping of every collection. Prints what is not
    /// ok, with what to do, and how much is ok; --all prints everything. Changes nothing. Reads one batch of documents per collection.
    ///
    /// Exit 0: nothing failed; 1: something failed; 2: something could not be checked.
    Doctor(Doctor),
    /// What both sides know of one key, and what will happen to it
    ///
    /// Looks at the row, its document in the view, each index, the open jobs and the dead letters, and sums it up in a sentence.
    /// Changes nothing.
    ///
    /// Exit 0: in step; 1: not in step; 2: this is no key of the collection.
    Explain(Explain),
    /// Compare everything, both ways, while traffic flows
    ///
    /// Looks for every key of the table in the index, and for every document of the index in the table. A difference counts only if it
    /// is still there at a second look, if nothing was written to its key meanwhile, and if no job is open for it. So there are no false
    /// alarms under load. --repair schedules what differs, and a worker fixes it.
    ///
    /// A million documents take ten seconds to a minute and little memory; no transaction is longer than a few seconds. --resume continues one
    /// that was interrupted.
    ///
    /// Exit 0: in step; 1: not in step; 2: could not tell.
    Audit(Audit),
    /// Dead letters: what was given up, why, and what to do about it
    ///
    /// A job is given up when its document is refused five times, is too large, cannot be built by the view, makes Elasticsearch fail,
    /// or has a key that cannot be one. Fix the cause (the row, the view or the mapping), then replay. A dead letter is deleted
    /// automatically as soon as its key is in step again, for example after a newer write.
    #[command(subcommand)]
    Dead(Dead),
    /// Stop the work on a collection, until resume
    ///
    /// From the next pass on, none of its jobs is claimed; direct writes stop after at most 30 s. Writes still schedule jobs, and no job
    /// is lost. A pause survives restarts; status shows it.
    ///
    /// Exit 0: paused; 1: it was paused already.
    Pause(Pause),
    /// Resume the work on a paused collection
    ///
    /// Workers take what was written meanwhile in its order, from the next tick on at the latest; new writes go at once.
    ///
    /// Exit 0: resumed; 1: it was not paused.
    Resume(Resume),
    /// Who did what: pauses, replays, discards, reindexes, attachments, repairs
    ///
    /// Each line was committed in the same transaction as the action that it describes. The newest comes first.
    Journal(Journal),
}

#[derive(Debug, clap::Args)]
pub(super) struct Pause {
    /// The collection; may be left out if there is only one
    #[arg(value_name = "COLLECTION")]
    pub collection: Option<String>,
    /// Why it is paused, for whoever finds it
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
pub(super) struct Init {
    /// The table, as in SQL: table, schema.table, or '"Table"' if it has capitals
    #[arg(value_name = "TABLE")]
    pub table: String,
    /// Write the files: NAME.sql and NAME.json beside the configuration, and the collection at its end
    ///
    /// A file that is there is never overwritten: then nothing is written at all.
    #[arg(long)]
    pub write: bool,
    /// What the collection, its files and its index are called; without it, as the table
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// What the view is called, as in SQL; without it, TABLE_document
    #[arg(long, value_name = "VIEW")]
    pub view: Option<String>,
    /// The column that the trigger keeps the document's version in
    #[arg(long, value_name = "COLUMN")]
    pub revision: Option<String>,
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
    /// A copy has the id of its original, and is refused while the original exists. This gives it a new id and forgets the original's
    /// indices. First set another CATCHWORD_INDEX_PREFIX, so that the names are free. Afterwards fill the indices: catchword reindex --all.
    #[arg(long, conflicts_with = "dry_run")]
    pub new_installation: bool,
    /// Let a copy of a database take the original's indices
    ///
    /// For a database that replaces the original, for example after an upgrade by dump. From then on the original is refused: nothing of it
    /// reaches the indices any more. A worker then runs an audit that compares the documents too.
    #[arg(long, conflicts_with_all = ["dry_run", "new_installation"])]
    pub take_over: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct Detach {
    /// The collection's name; it may be missing from the configuration
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
    /// Only these collections; without any, all of them
    #[arg(value_name = "COLLECTION")]
    pub collections: Vec<String>,
    /// Make passes until nothing moves any more
    #[arg(long)]
    pub drain: bool,
    /// The outcome as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct Status {
    /// Keep the screen and renew it every second, until q or Ctrl-C. Needs a terminal
    #[arg(long, conflicts_with = "json")]
    pub watch: bool,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct History {
    /// The collection; without it all that are configured
    #[arg(value_name = "COLLECTION")]
    pub collection: Option<String>,
    /// How far back: 30m, 3h, up to 8d
    #[arg(long, value_name = "TIME", default_value = "3h", value_parser = span)]
    pub span: Duration,
    /// As JSON, minute by minute
    #[arg(long)]
    pub json: bool,
}

/// From a minute to all that is kept.
fn span(text: &str) -> Result<Duration, String> {
    let kept = Duration::from_secs(60)..=Duration::from_secs(8 * 86_400);
    let span = humantime::parse_duration(text).ok().filter(|span| kept.contains(span));
    span.ok_or_else(|| "it is a time from 1m to 8d; write 30m or 3h".to_owned())
}

#[derive(Debug, clap::Args)]
pub(super) struct Check {
    /// As JSON, with everything that was judged
    #[arg(long, conflicts_with = "quiet")]
    pub json: bool,
    /// Print nothing if it exits 0, not even warnings: cron mails whatever is printed
    #[arg(long)]
    pub quiet: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct Doctor {
    /// Everything that was looked at: what is not ok first, then what is
    #[arg(long)]
    pub all: bool,
    /// As JSON; always everything
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
#[command(allow_missing_positional = true)]
pub(super) struct Explain {
    /// The collection; may be left out if there is only one
    #[arg(value_name = "COLLECTION", allow_negative_numbers = true)]
    pub collection: Option<String>,
    /// The key; a uuid may be in upper case
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
