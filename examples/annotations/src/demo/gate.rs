//! A gate before a server, through which its clients go: while it is closed, the server is down for these clients only.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How a gate stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stand {
    Open,
    /// Connections are refused, and those that were open are cut.
    Closed,
    /// Connections are taken, and nothing ever comes back.
    Frozen,
}

/// A TCP gate on a port of its own.
pub struct Gate {
    address: SocketAddr,
    stand: watch::Sender<Stand>,
    keeper: JoinHandle<()>,
    /// Bound and not listening: it keeps the port while the gate is closed, and a connection is refused all the same.
    _port: TcpSocket,
}

impl Gate {
    /// An open gate before `upstream` (`host:port`).
    pub async fn before(upstream: &str) -> std::io::Result<Gate> {
        let port = socket()?;
        port.bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
        let address = port.local_addr()?;
        let (stand, seen) = watch::channel(Stand::Open);
        let listener = listen(address)?;
        let keeper = tokio::spawn(keep(address, listener, upstream.into(), seen));
        Ok(Gate { address, stand, keeper, _port: port })
    }

    /// Where clients find it.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Lets everything through.
    pub fn open(&self) {
        self.stand.send_replace(Stand::Open);
    }

    /// Refuses, and cuts what is under way.
    pub fn close(&self) {
        self.stand.send_replace(Stand::Closed);
    }

    /// Takes connections and requests, and never answers.
    pub fn freeze(&self) {
        self.stand.send_replace(Stand::Frozen);
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

/// Several sockets may have the port: the one that keeps it, and the one that listens while the gate is not closed.
fn socket() -> std::io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.set_reuseport(true)?;
    Ok(socket)
}

fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = socket()?;
    socket.bind(address)?;
    socket.listen(1024)
}

async fn keep(address: SocketAddr, first: TcpListener, upstream: Arc<str>, mut stand: watch::Receiver<Stand>) {
    let mut listener = Some(first);
    loop {
        match (*stand.borrow_and_update(), &listener) {
            (Stand::Closed, _) => listener = None,
            // a port that is kept can be listened on
            (_, None) => listener = listen(address).ok(),
            _ => {}
        }
        let Some(open) = &listener else {
            if stand.changed().await.is_err() {
                return;
            }
            continue;
        };
        tokio::select! {
            changed = stand.changed() => if changed.is_err() { return },
            accepted = open.accept() => if let Ok((client, _)) = accepted {
                tokio::spawn(pass(client, upstream.clone(), stand.clone()));
            },
        }
    }
}

/// One connection, from its first byte to its end, or until the gate cuts it.
async fn pass(mut client: TcpStream, upstream: Arc<str>, mut stand: watch::Receiver<Stand>) {
    if stand.wait_for(|stand| *stand != Stand::Frozen).await.is_err() {
        return;
    }
    let Ok(mut server) = TcpStream::connect(&*upstream).await else {
        return;
    };
    // small requests and answers go back and forth: none may wait to be filled up
    _ = client.set_nodelay(true);
    _ = server.set_nodelay(true);
    // one copy for the connection's whole life: while the gate is frozen it is not polled, and loses nothing
    let mut copying = pin!(copy_bidirectional(&mut client, &mut server));
    loop {
        let now = *stand.borrow_and_update();
        if now == Stand::Closed {
            return;
        }
        tokio::select! {
            changed = stand.changed() => if changed.is_err() { return },
            _ = &mut copying, if now == Stand::Open => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    async fn echo() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut read, mut write) = stream.split();
                    tokio::io::copy(&mut read, &mut write).await
                });
            }
        });
        address
    }

    async fn ask(stream: &mut TcpStream) -> std::io::Result<[u8; 4]> {
        let mut answer = [0; 4];
        stream.write_all(b"ping").await?;
        stream.read_exact(&mut answer).await?;
        Ok(answer)
    }

    /// Waits for the gate's own task to have done what it was told.
    async fn until_refused(address: SocketAddr) -> bool {
        let refused = async {
            while !matches!(TcpStream::connect(address).await, Err(error) if error.kind() == ErrorKind::ConnectionRefused) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), refused).await.is_ok()
    }

    #[tokio::test]
    async fn a_closed_gate_refuses_and_cuts_and_an_open_one_passes_on_the_same_port() {
        let gate = Gate::before(&echo().await).await.unwrap();
        let mut early = TcpStream::connect(gate.address()).await.unwrap();
        assert_eq!(&ask(&mut early).await.unwrap(), b"ping");
        for _ in 0..3 {
            gate.close();
            assert!(until_refused(gate.address()).await);
            assert!(ask(&mut early).await.is_err(), "what was open is cut");
            gate.open();
            let mut again = loop {
                if let Ok(stream) = TcpStream::connect(gate.address()).await {
                    break stream;
                }
                tokio::task::yield_now().await;
            };
            assert_eq!(&ask(&mut again).await.unwrap(), b"ping");
            early = again;
        }
    }

    #[tokio::test]
    async fn a_frozen_gate_takes_requests_and_answers_when_it_opens() {
        let gate = Gate::before(&echo().await).await.unwrap();
        gate.freeze();
        let mut stream = TcpStream::connect(gate.address()).await.unwrap();
        let answer = tokio::time::timeout(Duration::from_millis(200), ask(&mut stream)).await;
        assert!(answer.is_err(), "no answer, and no end either");
        gate.open();
        let mut answer = [0; 4];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"ping");
    }
}
