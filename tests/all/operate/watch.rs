//! `status --watch` on a real terminal, which `script` makes; and colours.

use std::process::Stdio;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};

use crate::common::{World, eventually};

/// A command on a terminal of 80 columns and 24 rows.
struct Screen {
    child: Child,
    keys: ChildStdin,
    shown: Arc<Mutex<String>>,
}

impl Screen {
    async fn start(world: &World, database_url: &str, words: &str, variables: &[(&str, &str)]) -> Screen {
        let binary = env!("CARGO_BIN_EXE_catchword");
        // the settings of the terminal before and after
        let script = format!(
            "stty rows 24 cols 80; tty; echo before=$(stty -g); sh -c 'echo pid=$$; exec {binary} {words}'; echo exit=$?; echo after=$(stty -g)"
        );
        let mut command = Command::new("script");
        command.args(["-qefc", &script, "/dev/null"]).env_clear().env("PATH", std::env::var("PATH").unwrap());
        command.env("SHELL", "/bin/sh").env("TERM", "xterm-256color").env("DATABASE_URL", database_url);
        command.env("ELASTICSEARCH_URL", world.gate.as_ref().map_or(&world.elasticsearch, |gate| &gate.url));
        command.env("CATCHWORD_INDEX_PREFIX", &world.prefix).env("CATCHWORD_CONFIG", world.folder.join("catchword.toml"));
        command.envs(variables.iter().copied()).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let (keys, mut out) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let shown = Arc::new(Mutex::new(String::new()));
        let kept = shown.clone();
        tokio::spawn(async move {
            let mut bytes = [0_u8; 4096];
            while let Ok(read @ 1..) = out.read(&mut bytes).await {
                kept.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..read]));
            }
        });
        Screen { child, keys, shown }
    }

    fn shown(&self) -> String {
        self.shown.lock().unwrap().clone()
    }

    async fn shows(&self, text: &str) {
        eventually(&format!("{text} is shown"), async || self.shown().contains(text)).await;
    }

    /// What stands behind this word on a line of its own.
    fn after(&self, word: &str) -> String {
        let shown = self.shown();
        let (_, rest) = shown.split_once(word).unwrap_or_else(|| panic!("no {word} in {shown:?}"));
        rest.lines().next().unwrap().trim().to_owned()
    }

    async fn press(&mut self, keys: &[u8]) {
        self.keys.write_all(keys).await.unwrap();
        self.keys.flush().await.unwrap();
    }

    /// It ends, and the terminal is as it was: the screen of before, with a cursor, lines that wrap, and the same settings.
    async fn ends_well(&mut self) {
        self.shows("after=").await;
        self.child.wait().await.unwrap();
        assert_eq!(self.after("exit="), "0", "{:?}", self.shown());
        assert_eq!(self.after("after="), self.after("before="), "{:?}", self.shown());
        let shown = self.shown();
        for (taken, given_back) in [("\x1b[?1049h", "\x1b[?1049l"), ("\x1b[?25l", "\x1b[?25h"), ("\x1b[?7l", "\x1b[?7h")] {
            let (taken, given_back) = (shown.find(taken).unwrap(), shown.rfind(given_back).unwrap());
            assert!(taken < given_back, "{shown:?}");
        }
    }

    /// The lines that were drawn, without colours.
    fn lines(&self) -> Vec<String> {
        let shown = self.shown();
        let drawn = shown.split_once("\x1b[?1049h").map_or("", |(_, drawn)| drawn).split("\x1b[?1049l").next().unwrap();
        let mut lines = vec![String::new()];
        let mut rest = drawn.chars();
        while let Some(c) = rest.next() {
            if c != '\x1b' {
                lines.last_mut().unwrap().push(c);
                continue;
            }
            // to the letter that ends the sequence; H moves to another line
            if rest.find(char::is_ascii_alphabetic) == Some('H') {
                lines.push(String::new());
            }
        }
        lines
    }

    fn widest(&self) -> usize {
        self.lines().iter().map(|line| line.chars().count()).max().unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_screen_shows_each_collection_and_q_leaves_the_terminal_as_it_was() {
    let world = World::new().await;
    world.annotate("acct:a", "due").await;
    world
        .sql("insert into catchword.history select date_trunc('minute', now()) - make_interval(mins => n), 'annotation', 0, 0, 0, 0, 0, n, 0, 0, 0, 0 from generate_series(1, 60) n")
        .await;
    let mut screen = Screen::start(&world, &world.database_url, "status --watch", &[]).await;
    screen.shows("no living worker serves it").await;
    let lines = screen.lines();
    assert!(lines.iter().any(|line| line.starts_with("catchword  ") && line.ends_with("q quits")), "{lines:?}");
    let row = lines.iter().rfind(|line| line.starts_with("annotation ")).unwrap();
    let words: Vec<&str> = row.split_whitespace().collect();
    assert_eq!((words[1], words[2]), ("1", "0"), "one is due: {row}");
    assert!(words.last().unwrap().starts_with('█') && words.last().unwrap().ends_with('▂'), "the last hour: {row}");
    assert_eq!(screen.widest(), 80);
    // it renews itself
    let clocks = async || {
        let mut clocks: Vec<String> = screen.lines().into_iter().filter(|line| line.starts_with("catchword  ")).collect();
        clocks.dedup();
        clocks.len()
    };
    eventually("the clock goes on", async || clocks().await >= 3).await;
    world.annotate("acct:a", "another").await;
    let two_are_due = |line: &String| line.split_whitespace().take(3).eq(["annotation", "2", "0"]);
    eventually("another one is due", async || screen.lines().iter().any(two_are_due)).await;
    screen.press(b"xyz\x1b[A").await;
    screen.press(b"q").await;
    screen.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_and_a_signal_leave_the_terminal_as_it_was() {
    let world = World::new().await;
    let mut screen = Screen::start(&world, &world.database_url, "status --watch", &[]).await;
    screen.shows("due, last hour").await;
    screen.press(b"\x03").await;
    screen.ends_well().await;
    for signal in ["-TERM", "-INT", "-HUP"] {
        let mut screen = Screen::start(&world, &world.database_url, "status --watch", &[]).await;
        screen.shows("due, last hour").await;
        let pid = screen.after("pid=");
        assert!(Command::new("kill").args([signal, &pid]).status().await.unwrap().success());
        screen.ends_well().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_screen_fits_the_terminal_after_a_resize() {
    let world = World::new().await;
    let mut screen = Screen::start(&world, &world.database_url, "status --watch", &[]).await;
    screen.shows("due, last hour").await;
    assert_eq!(screen.widest(), 80);
    let shown = screen.shown();
    let terminal = shown.lines().find(|line| line.starts_with("/dev/")).unwrap().trim();
    let resized = Command::new("stty").args(["-F", terminal, "rows", "40", "cols", "132"]).status().await.unwrap();
    assert!(resized.success());
    eventually("it is as wide as the terminal", async || screen.widest() == 132).await;
    screen.press(b"q").await;
    screen.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_down_is_shown_and_the_screen_goes_on() {
    let world = World::gated().await;
    world.gate.as_ref().unwrap().refuse();
    let mut screen = Screen::start(&world, &world.database_url, "status --watch", &[]).await;
    screen.shows("could not be asked: could not count").await;
    world.gate.as_ref().unwrap().pass();
    eventually("it sees that Elasticsearch is back", async || {
        let lines = screen.lines();
        let last = lines.iter().rposition(|line| line.starts_with("catchword  ")).unwrap();
        let frame = &lines[lines[..last].iter().rposition(|line| line.starts_with("catchword  ")).unwrap_or(0)..last];
        frame.iter().any(|line| line.starts_with("annotation")) && !frame.iter().any(|line| line.contains("could not be asked"))
    })
    .await;
    screen.press(b"q").await;
    screen.ends_well().await;

    let (_, down) = world.postgres_away().await.remove(0);
    let mut screen = Screen::start(&world, &down, "status --watch", &[]).await;
    screen.shows("could not be asked").await;
    let frames = screen.lines().len();
    eventually("it goes on", async || screen.lines().len() > frames).await;
    screen.press(b"q").await;
    screen.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_terminal_it_is_refused_with_a_sentence() {
    let world = World::new().await;
    let (code, out, err) = world.run(&["status", "--watch"]).await;
    assert_eq!((code, out.as_str()), (2, ""));
    assert_eq!(err, "catchword: --watch needs a terminal; without one: catchword status, or catchword status --json\n");
    let screen = Screen::start(&world, &world.database_url, "status --watch", &[("TERM", "dumb")]).await;
    screen.shows("after=").await;
    assert_eq!(screen.after("exit="), "2");
    assert!(screen.shown().contains("TERM is dumb") && !screen.shown().contains('\x1b'), "{:?}", screen.shown());
    assert_eq!(world.run(&["status", "--watch", "--json"]).await.0, 2);
}

const RED: &str = "\x1b[1;31m";

#[tokio::test(flavor = "multi_thread")]
async fn what_needs_a_person_is_red_on_a_terminal_and_plain_everywhere_else() {
    let world = World::new().await;
    world.in_step("acct:a", "there").await;
    world.sql("insert into catchword.job (collection, key, priority, tag) values ('annotation', 'no uuid', 1, 'test')").await;
    assert_eq!(world.pass().await.buried, 1);
    // a delete that nobody was told of
    world.sql("delete from annotation; delete from catchword.job where collection = 'annotation'").await;
    for (words, red) in [
        ("status", "  \x1b[1;31mdead\x1b[0m      1"),
        ("check", "\x1b[1;31munwell\x1b[0m: "),
        ("dead list", "       \x1b[1;31m1\x1b[0m  annotation bad_key: "),
        ("dead list --each", "\x1b[1;31m"),
        ("audit annotation", "  \x1b[1;31mnot in step\x1b[0m; repair it: "),
        ("doctor", "\x1b[33mwarn\x1b[0m"),
    ] {
        let list: Vec<&str> = words.split(' ').collect();
        let run = async |variables: &[(&str, &str)]| {
            let output = world.binary().args(&list).envs(variables.iter().copied()).output().await.unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        let plain = run(&[("TERM", "xterm")]).await;
        assert!(!plain.contains('\x1b') && !plain.is_empty(), "{words}: {plain:?}");
        assert!(!run(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]).await.contains('\x1b'), "{words}");
        let forced = run(&[("CLICOLOR_FORCE", "1")]).await;
        assert!(forced.contains(red), "{words}: {forced:?}");

        let screen = Screen::start(&world, &world.database_url, words, &[]).await;
        screen.shows("after=").await;
        assert!(screen.shown().contains(red), "{words}: {:?}", screen.shown());
        let screen = Screen::start(&world, &world.database_url, words, &[("NO_COLOR", "1")]).await;
        screen.shows("after=").await;
        // a bar of progress moves the cursor, and that is no colour
        let shown = screen.shown();
        assert!(["\x1b[0", "\x1b[1", "\x1b[3"].iter().all(|colour| !shown.contains(colour)), "{words}: {shown:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_red_that_needs_nobody() {
    let world = World::new().await;
    world.in_step("acct:a", "there").await;
    world.annotate("acct:a", "due, and no worker runs yet").await;
    assert_eq!(world.run(&["pause", "bystander", "--reason", "trial"]).await.0, 0);
    for words in [&["status"][..], &["dead", "list"], &["audit", "annotation"], &["doctor", "--all"]] {
        let output = world.binary().args(words).env("CLICOLOR_FORCE", "1").output().await.unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && said.contains('\x1b') && !said.contains(RED), "{words:?}: {said:?}");
    }
}
