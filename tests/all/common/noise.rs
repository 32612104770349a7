//! Rows, documents and jobs that no test is about, and that must never be touched.

use super::World;

const ROWS: i64 = 5;

impl World {
    /// Puts the noise in place and in step, with a job that waits for an hour.
    pub(super) async fn make_noise(&self) {
        self.sql("insert into bystander (id, text) select i, 'noise ' || i from generate_series(1, 5) i").await;
        self.sql("update catchword.job set scheduled_at = now() where collection = 'bystander'").await;
        self.catchword.drain("noise", &["bystander"]).await.unwrap();
        self.sql("select catchword.schedule('bystander', array['1', '2'], 'noise', 1, interval '1 hour')").await;
        self.put("bystander", "900", 1_000_000_000, serde_json::json!({ "text": "nobody knows me" })).await;
    }

    /// Waits until Elasticsearch answers a direct write in time: one that has just started, on a busy machine, does not.
    pub(super) async fn warm_up(&self) {
        super::eventually("a direct write is answered in time", async || {
            self.catchword.index_now("bystander", [1]).await == catchword::Direct::Indexed
        })
        .await;
    }

    /// Nothing of it was changed, moved or written again.
    pub async fn noise_is_untouched(&self) {
        for id in 1..=ROWS {
            let revision: i64 = self.one(&format!("select catchword_revision from bystander where id = {id}")).await;
            assert_eq!(self.version("bystander", &id.to_string()).await, Some(revision));
        }
        assert_eq!(self.version("bystander", "900").await, Some(1_000_000_000));
        let jobs: i64 = self.one("select count(*) from catchword.job where collection = 'bystander'").await;
        assert_eq!(jobs, 2, "the noise's own jobs wait for an hour");
    }
}
