//! Somebody's desk: a world with a worker, a server that shows it, a browser in front.

use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Child;

use super::browser::{Browser, Scripts};
use crate::common::{Layout, Running, World, start};

pub struct Desk {
    pub browser: Browser,
    pub server: Server,
    _worker: Running,
    pub world: World,
}

/// `catchword serve` as a process.
pub struct Server {
    pub url: String,
    _child: Child,
}

/// A worker that looks every second and has a quick lane, behind a gate to Elasticsearch.
pub fn layout() -> Layout {
    Layout { gated: true, tick: "* * * * * *", quick: "25ms", ..Layout::default() }
}

impl Desk {
    /// Everything runs, and somebody with this role is signed in.
    pub async fn of(role: &str) -> Desk {
        let desk = Desk::with(World::with(layout()).await, Scripts::On).await;
        desk.sign_in("mina", role).await;
        desk
    }

    pub async fn with(world: World, scripts: Scripts) -> Desk {
        let worker = start(&world).await;
        let server = Server::start(&world, &[]).await;
        let browser = Browser::start(&server.url, scripts).await;
        Desk { browser, server, _worker: worker, world }
    }

    /// Makes a key and signs in with it, as a person does.
    pub async fn sign_in(&self, name: &str, role: &str) -> String {
        let key = make_key(&self.world, &[name, "--role", role]).await;
        self.browser.open("/sign-in").await;
        self.browser.fill("#key", &key).await;
        self.browser.press("Sign in").await;
        self.browser.see(".who", name).await;
        key
    }
}

/// Makes an API key, with these words behind `key create`.
pub async fn make_key(world: &World, words: &[&str]) -> String {
    let (code, out, err) = world.run(&[&["key", "create"][..], words].concat()).await;
    assert_eq!(code, 0, "{err}");
    out.trim().to_owned()
}

impl Server {
    /// Starts it on a free port, with these options more, and waits until it listens.
    pub async fn start(world: &World, options: &[&str]) -> Server {
        Server::launch(&mut world.binary(), options).await
    }

    pub async fn launch(command: &mut tokio::process::Command, options: &[&str]) -> Server {
        command.args(["--log", "json", "serve", "--listen", "127.0.0.1:0"]).args(options).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let url = loop {
            let line = lines.next_line().await.unwrap().expect("the server says where it listens");
            eprintln!("{line}");
            let said: serde_json::Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"));
            if let Some(address) = said["listen"].as_str() {
                break format!("http://{address}");
            }
        };
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                eprintln!("{line}");
            }
        });
        Server { url, _child: child }
    }
}
