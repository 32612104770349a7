//! The words of `catchword serve`.

use std::net::SocketAddr;

use axum::http::HeaderName;

use crate::serve::{Network, Role};

/// Heading of the help.
const PROXY: &str = "Behind a proxy";

#[derive(Debug, clap::Args)]
pub(crate) struct Serve {
    /// Listen here
    ///
    /// On any other address than this machine's own (127.0.0.1, ::1) it starts only if there is an API key, or a proxy says who asks.
    /// It speaks plain HTTP: TLS is a proxy's.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8470")]
    pub listen: SocketAddr,
    /// Let whoever is on this machine look without a key
    ///
    /// Such a one is a reader. Requests that a proxy brought are not meant.
    #[arg(long)]
    pub open: bool,
    /// Let nobody change anything, whatever the key
    #[arg(long)]
    pub read_only: bool,
    /// Show the bodies of documents
    ///
    /// Without it a key is explained by its numbers, and the fields that differ are named without their values.
    #[arg(long)]
    pub show_documents: bool,
    /// Due jobs of a collection above which the API schedules no more, and answers 429
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(i64).range(1..))]
    pub most_due: i64,
    /// What stands before every path, as in /catchword
    #[arg(long, value_name = "PATH", help_heading = PROXY, default_value = "", hide_default_value = true, value_parser = base)]
    pub base_path: String,
    /// A name that requests may be meant for, beside those of this machine; may be repeated
    ///
    /// Where it listens on this machine only, the Host header must name this machine. So a page elsewhere cannot make its own name lead
    /// here.
    #[arg(long = "host", value_name = "NAME", help_heading = PROXY)]
    pub hosts: Vec<String>,
    /// The header in which a proxy names the user, as in X-Forwarded-User
    ///
    /// It is believed only from the addresses of --trusted-proxies. The proxy must take it off what comes from outside.
    #[arg(long, value_name = "HEADER", help_heading = PROXY, requires = "trusted_proxies")]
    pub trust_user_header: Option<HeaderName>,
    /// Addresses of proxies that are believed, as in 10.0.0.0/8,127.0.0.1
    #[arg(long, value_name = "CIDR", help_heading = PROXY, value_delimiter = ',', requires = "trust_user_header")]
    pub trusted_proxies: Vec<Network>,
    /// What users of the proxy may do: reader, writer, operator, admin
    #[arg(long, value_name = "ROLE", help_heading = PROXY, default_value = "reader", value_parser = role)]
    pub proxy_role: Role,
}

pub(crate) fn role(word: &str) -> Result<Role, String> {
    Role::named(word).ok_or_else(|| "write reader, writer, operator or admin".to_owned())
}

/// With a slash before it and none behind it; nothing where `/` is meant.
fn base(text: &str) -> Result<String, String> {
    let path = text.trim_end_matches('/');
    let plain = path.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~/".contains(&b));
    if (path.is_empty() || path.starts_with('/')) && plain && !path.contains("//") {
        Ok(path.to_owned())
    } else {
        Err("write a path, as in /catchword".to_owned())
    }
}
