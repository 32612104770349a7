//! Writes of every kind while something breaks, and the comparison after it.

use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{World, eventually};

const INSERT: &str =
    "insert into annotation (userid, target_uri, target_uri_normalized, text) values ('acct:a', 'u', 'u', 'new') returning id";
const UPDATE: &str = "update annotation set text = text || '+' where id = (select id from annotation where userid = 'acct:a' offset floor(random() * 50) limit 1) returning id";
const DELETE: &str = "delete from annotation where id = (select id from annotation where userid = 'acct:a' offset floor(random() * 50) limit 1) returning id";

/// Offered in a second: what a writer could not do in time it does later, as clients that do not wait for each other would.
pub const OFFERED: u64 = 200;
/// So many that each has 40 ms for a write.
const WRITERS: u64 = 8;

/// 200 writes a second, a third of them indexed directly.
pub struct Traffic {
    over: CancellationToken,
    writers: Vec<JoinHandle<u64>>,
}

impl Traffic {
    /// 60 % inserts, 30 % updates, 10 % deletes: 100 rows more each second.
    pub fn start(world: &Arc<World>) -> Traffic {
        Traffic::of(world, 6)
    }

    /// 40 % inserts, 30 % updates, 30 % deletes: for minutes on end the table stays small.
    pub fn steady(world: &Arc<World>) -> Traffic {
        Traffic::of(world, 4)
    }

    fn of(world: &Arc<World>, inserts: u32) -> Traffic {
        let over = CancellationToken::new();
        let writers = (0..WRITERS).map(|_| tokio::spawn(write(world.clone(), inserts, over.clone()))).collect();
        Traffic { over, writers }
    }

    /// Ends it; returns how many writes there were.
    pub async fn end(self) -> u64 {
        self.over.cancel();
        let mut writes = 0;
        for writer in self.writers {
            writes += writer.await.unwrap();
        }
        writes
    }
}

/// Of ten writes so many are inserts, three are updates, and the rest deletes.
async fn write(world: Arc<World>, inserts: u32, over: CancellationToken) -> u64 {
    let mut random = StdRng::from_os_rng();
    let mut clock = tokio::time::interval(Duration::from_millis(1000 * WRITERS / OFFERED));
    let mut writes = 0;
    while !over.is_cancelled() {
        clock.tick().await;
        let sql = match random.random_range(0..10) {
            n if n < inserts => INSERT,
            n if n < inserts + 3 => UPDATE,
            _ => DELETE,
        };
        let key: Option<uuid::Uuid> = sqlx::query_scalar(sql).fetch_optional(&world.pool).await.unwrap();
        writes += 1;
        if let Some(key) = key
            && random.random_bool(0.3)
        {
            let catchword = world.catchword.clone();
            tokio::spawn(async move { catchword.index_now("annotation", [key]).await });
        }
    }
    writes
}

impl World {
    /// Works until no job is left; then nothing may be lost, stale, a ghost or dead.
    pub async fn settle_and_compare(&self) {
        let last = self.past_the_gate().await;
        eventually("the queue is empty", async || {
            self.make_due().await;
            last.drain("test", &["annotation"]).await.unwrap();
            self.jobs().await == 0
        })
        .await;
        assert_eq!(self.one::<i64>("select count(*) from catchword.dead_job").await, 0);
        self.both_sides_agree().await;
        self.noise_is_untouched().await;
    }
}
