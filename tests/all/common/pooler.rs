//! A PgBouncer of a test's own in front of a database.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{ConnectOptions, PgConnection, PgPool};
use tokio::process::{Child, Command};
use url::Url;
use uuid::Uuid;

use super::eventually;

/// Ended when it goes out of scope, also after a panic.
pub struct Pooler {
    pub url: String,
    folder: PathBuf,
    _child: Child,
}

impl Pooler {
    /// `mode` is PgBouncer's: session, transaction or statement. So many sessions at the server at most, for each role.
    pub async fn before(database_url: &str, mode: &str, sessions: usize) -> Pooler {
        let server = Url::parse(database_url).unwrap();
        let folder = std::env::temp_dir().join(format!("catchword-pooler-{}", Uuid::new_v4().simple()));
        std::fs::create_dir_all(&folder).unwrap();
        let port = free_port();
        let password = percent(server.password().unwrap_or_default());
        std::fs::write(folder.join("users"), format!("\"{}\" \"{password}\"\n", percent(server.username()))).unwrap();
        let config = folder.join("pgbouncer.ini");
        let (host, to) = (server.host_str().unwrap(), server.port().unwrap_or(5432));
        let text = format!(
            "[databases]\n* = host={host} port={to}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
             auth_type = plain\nauth_file = {}\npool_mode = {mode}\ndefault_pool_size = {sessions}\nmax_client_conn = 500\n",
            folder.join("users").display()
        );
        std::fs::write(&config, text).unwrap();
        // Debian puts it where not every user's path leads; as root it gives its rights away by itself
        let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
        let mut command = Command::new("sh");
        let run = r#"if [ "$(id -u)" = 0 ]; then exec pgbouncer -q -u nobody "$0"; else exec pgbouncer -q "$0"; fi"#;
        command.args(["-c", run]).arg(&config).env("PATH", path).kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap();
        let mut url = server.clone();
        url.set_port(Some(port)).unwrap();
        let pooler = Pooler { url: url.to_string(), folder, _child: child };
        let reached = async || tokio::time::timeout(Duration::from_secs(5), pooler.connection()).await.is_ok_and(|c| c.is_ok());
        eventually("PgBouncer answers; scripts/services tools installs it", reached).await;
        pooler
    }

    /// As an application connects: without the one parameter of sqlx' that PgBouncer refuses at the start of a session.
    fn options(&self) -> PgConnectOptions {
        self.url.parse::<PgConnectOptions>().unwrap().extra_float_digits(None)
    }

    pub async fn connection(&self) -> Result<PgConnection, sqlx::Error> {
        self.options().connect().await
    }

    pub async fn pool(&self, connections: u32) -> PgPool {
        PgPoolOptions::new().max_connections(connections).test_before_acquire(false).connect_with(self.options()).await.unwrap()
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn percent(text: &str) -> String {
    url::form_urlencoded::parse(format!("x={text}").as_bytes()).next().map(|(_, value)| value.into_owned()).unwrap_or_default()
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
