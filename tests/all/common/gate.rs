//! A TCP gate in front of Elasticsearch: it can pass, refuse, or hold requests back and let them through later.

use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Pass,
    /// Connections are closed at once.
    Refuse,
    /// What clients send is kept until the gate passes again.
    Hold,
}

pub struct Gate {
    pub url: String,
    mode: watch::Sender<Mode>,
    held: watch::Receiver<usize>,
}

impl Gate {
    /// A gate in front of `upstream` ("http://127.0.0.1:port").
    pub async fn before(upstream: &str) -> Gate {
        let upstream: Arc<str> = upstream.trim_start_matches("http://").trim_end_matches('/').into();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (mode, seen) = watch::channel(Mode::Pass);
        let (holding, held) = watch::channel(0);
        let holding = Arc::new(holding);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(connection(client, upstream.clone(), seen.clone(), holding.clone()));
            }
        });
        Gate { url, mode, held }
    }

    pub fn refuse(&self) {
        self.mode.send_replace(Mode::Refuse);
    }

    pub fn hold(&self) {
        self.mode.send_replace(Mode::Hold);
    }

    pub fn pass(&self) {
        self.mode.send_replace(Mode::Pass);
    }

    /// Waits until a request is being held back.
    pub async fn holds_something(&self) {
        self.held.clone().wait_for(|held| *held > 0).await.unwrap();
    }
}

async fn connection(mut client: TcpStream, upstream: Arc<str>, mut mode: watch::Receiver<Mode>, holding: Arc<watch::Sender<usize>>) {
    if *mode.borrow() == Mode::Refuse {
        return;
    }
    let Ok(mut server) = TcpStream::connect(&*upstream).await else {
        return;
    };
    let (mut from_client, mut from_server) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    loop {
        let now = *mode.borrow_and_update();
        tokio::select! {
            _ = mode.changed() => if *mode.borrow() == Mode::Refuse { return },
            read = client.read(&mut from_client) => {
                let Ok(n @ 1..) = read else { return };
                if now == Mode::Hold {
                    holding.send_modify(|held| *held += 1);
                    let released = mode.wait_for(|mode| *mode != Mode::Hold).await.map(|mode| *mode);
                    holding.send_modify(|held| *held -= 1);
                    if !matches!(released, Ok(Mode::Pass)) { return }
                }
                if server.write_all(&from_client[..n]).await.is_err() { return }
            }
            read = server.read(&mut from_server) => {
                let Ok(n @ 1..) = read else { return };
                // a client that has given up is no reason to stop: what it sent goes through
                if client.write_all(&from_server[..n]).await.is_err() { return }
            }
        }
    }
}
