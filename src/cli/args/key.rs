//! The words of `catchword key`.

use std::time::Duration;

use clap::Subcommand;

use super::serve::role;
use crate::api_key::{RATE, Role};

#[derive(Debug, Subcommand)]
pub(crate) enum Key {
    /// Make a key, and print it: this is the only time that it is shown
    ///
    /// Postgres keeps a digest of it. The journal says who made it. The database role must be an operator's or the migrator.
    ///
    /// Exit 0: made; 1: a key of that name is there.
    Create(KeyCreate),
    /// The keys: what each may do, since when, when it was last used. Never the keys themselves
    List(KeyList),
    /// Refuse a key from now on, and end the sessions that were begun with it
    ///
    /// Exit 0: revoked; 1: there is none of that name.
    Revoke(KeyRevoke),
}

#[derive(Debug, clap::Args)]
pub(crate) struct KeyCreate {
    /// What it is called, in the journal too: letters, digits and . _ @ -
    #[arg(value_name = "NAME", value_parser = name)]
    pub name: String,
    /// What it may do; each may also do what those before it may
    ///
    /// reader: looks. writer: schedules keys. operator: pauses, replays, discards, reindexes, audits. admin: also rebuilds.
    #[arg(long, value_name = "ROLE", value_parser = role)]
    pub role: Role,
    /// The only collections that it may see and act on; without it, all
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',')]
    pub collections: Option<Vec<String>>,
    /// Requests a second, at most
    #[arg(long, value_name = "N/s", default_value_t = RATE, hide_default_value = true, value_parser = rate)]
    pub rate: i32,
    /// When it ends, as in 90days; without it, when it is revoked
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub expires: Option<Duration>,
    /// If a key of that name is there, leave it and exit 0
    #[arg(long)]
    pub unless_exists: bool,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct KeyList {
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct KeyRevoke {
    /// What it is called
    #[arg(value_name = "NAME")]
    pub name: String,
}

fn name(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._@-".contains(c);
    let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric());
    if begins && text.len() <= 63 && text.chars().all(plain) {
        Ok(text.to_owned())
    } else {
        Err("write up to 63 letters, digits and . _ @ -, beginning with a letter or a digit".to_owned())
    }
}

fn rate(text: &str) -> Result<i32, String> {
    let number = text.strip_suffix("/s").unwrap_or(text).parse().ok();
    number.filter(|n| (1..=100_000).contains(n)).ok_or_else(|| "write requests a second, as in 100/s".to_owned())
}

fn span(text: &str) -> Result<Duration, String> {
    let span = humantime::parse_duration(text).map_err(|_| "write a span of time, as in 90days".to_owned())?;
    if span.is_zero() || span > Duration::from_secs(3660 * 24 * 3600) {
        return Err("write a span between a second and ten years".to_owned());
    }
    Ok(span)
}
