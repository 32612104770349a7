use std::io::IsTerminal;
use std::time::{Duration, Instant};

use annotations::generate::{BATCH, Generator, Written};
use anyhow::Context;
use clap::Args;

use super::Security;

/// Write realistic annotations into the database, the same ones for the same seed.
///
/// They go straight into Postgres, 500 per transaction, past the API: the triggers of catchword
/// leave the jobs, and a worker indexes them. Users, pages and groups follow Zipf's law; a text is
/// about half a kilobyte. Ids and times come from the seed, so running it again writes only what
/// is missing.
#[derive(Debug, Args)]
pub(crate) struct Generate {
    /// How many annotations to insert; edits and deletes come on top
    #[arg(long, value_name = "N")]
    count: usize,
    /// Which data set: the same number gives the same annotations, another number others
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Inserts per second, at most; without it as fast as the database takes them
    #[arg(long, value_name = "R", value_parser = positive)]
    rate: Option<f64>,
    /// Edits for each insert: 0.2 changes one annotation for every five written
    #[arg(long, value_name = "F", default_value_t = 0.0, value_parser = share)]
    edits: f64,
    /// Deletes (soft ones) for each insert: 0.05 deletes one for every twenty written
    #[arg(long, value_name = "F", default_value_t = 0.0, value_parser = share)]
    deletes: f64,
    #[command(flatten)]
    security: Security,
}

/// Between two progress lines on a terminal; elsewhere ten times as long, since they all stay.
const PROGRESS: Duration = Duration::from_millis(500);

impl Generate {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let pool = self.security.database().await?;
        let mut conn = pool.acquire().await.context("cannot reach the database")?;
        let mut generator = Generator::new(self.seed).edits(self.edits).deletes(self.deletes);
        let mut progress = Progress::new(self.count);
        let mut written = Written::default();
        let mut done = 0;
        while done < self.count {
            let batch = self.batch().min(self.count - done);
            written += generator.insert_many(&mut conn, batch).await.with_context(|| {
                format!("stopped after {done} of {}; run `annotation-api migrate` first if the tables are missing", self.count)
            })?;
            done += batch;
            progress.show(done);
            if let Some(rate) = self.rate {
                tokio::time::sleep_until((progress.started + Duration::from_secs_f64(done as f64 / rate)).into()).await;
            }
        }
        progress.end();
        println!("{}", self.summary(written, progress.started.elapsed()));
        Ok(())
    }

    /// Inserts per transaction: at a low rate a tenth of a second's worth, so that they come evenly.
    fn batch(&self) -> usize {
        self.rate.map_or(BATCH, |rate| (rate / 10.0).ceil() as usize).clamp(1, BATCH)
    }

    fn summary(&self, written: Written, took: Duration) -> String {
        let Written { inserted, edited, deleted } = written;
        let there = self.count as u64 - inserted;
        let there = if there > 0 { format!(" ({there} were there already)") } else { String::new() };
        format!("seed {}: inserted {inserted}{there}, edited {edited}, deleted {deleted} in {:.1} s", self.seed, took.as_secs_f64())
    }
}

struct Progress {
    count: usize,
    started: Instant,
    shown: Instant,
    terminal: bool,
}

impl Progress {
    fn new(count: usize) -> Self {
        let now = Instant::now();
        Self { count, started: now, shown: now, terminal: std::io::stderr().is_terminal() }
    }

    fn show(&mut self, done: usize) {
        let pause = if self.terminal { PROGRESS } else { PROGRESS * 10 };
        if self.shown.elapsed() < pause {
            return;
        }
        self.shown = Instant::now();
        let rate = done as f64 / self.started.elapsed().as_secs_f64();
        let line = format!("{done} of {} annotations, {rate:.0} per second", self.count);
        // on a terminal the line is written over, and its rest cleared
        if self.terminal { eprint!("\r{line}\x1b[K") } else { eprintln!("{line}") }
    }

    fn end(&self) {
        if self.terminal {
            eprint!("\r\x1b[K");
        }
    }
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 => Ok(number),
        _ => Err("give a number above 0, such as 200".to_owned()),
    }
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if (0.0..=1.0).contains(&number) => Ok(number),
        _ => Err("give a number from 0 to 1, such as 0.2".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_and_a_share_must_be_sensible_numbers() {
        assert_eq!(positive("0.5"), Ok(0.5));
        assert!(positive("0").is_err() && positive("-1").is_err() && positive("inf").is_err() && positive("x").is_err());
        assert_eq!(share("0.2"), Ok(0.2));
        assert!(share("1.1").is_err() && share("-0.1").is_err() && share("NaN").is_err());
    }
}
