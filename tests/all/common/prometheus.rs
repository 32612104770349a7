//! A real Prometheus with the alarms loaded.

use std::path::PathBuf;
use std::process::Stdio;

use serde_json::Value;
use tokio::process::{Child, Command};
use uuid::Uuid;

use super::eventually;

pub struct Prometheus {
    pub url: String,
    child: Child,
    folder: PathBuf,
    client: reqwest::Client,
}

impl Prometheus {
    /// Scrapes these, as (job, address), every second, and judges every second: the alarms' minutes are its seconds.
    pub async fn watching(targets: &[(&str, &str)]) -> Prometheus {
        let folder = std::env::temp_dir().join(format!("catchword-prometheus-{}", Uuid::new_v4().simple()));
        std::fs::create_dir_all(&folder).unwrap();
        let faults = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/faults");
        let rules = Command::new(faults).args(["rules", "60"]).output().await.unwrap();
        assert!(rules.status.success() && !rules.stdout.is_empty());
        std::fs::write(folder.join("alarms.yaml"), rules.stdout).unwrap();
        let mut config =
            "global: { scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s }\nrule_files: [alarms.yaml]\nscrape_configs:\n"
                .to_owned();
        for (job, address) in targets {
            config += &format!("  - {{ job_name: {job}, static_configs: [{{ targets: [\"{address}\"] }}] }}\n");
        }
        std::fs::write(folder.join("prometheus.yml"), config).unwrap();
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        // it does not say which port it took, so one that was free just now; another, if somebody was faster
        for _ in 0..5 {
            let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let mut child = Command::new("prometheus")
                .arg(format!("--config.file={}", folder.join("prometheus.yml").display()))
                .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
                .arg(format!("--web.listen-address=127.0.0.1:{port}"))
                .arg("--log.level=warn")
                .stdin(Stdio::null())
                .kill_on_drop(true)
                .spawn()
                .unwrap_or_else(|error| panic!("prometheus: {error}; run: scripts/services tools"));
            let url = format!("http://127.0.0.1:{port}");
            let (mut ended, ready) = (false, format!("{url}/-/ready"));
            eventually("Prometheus is ready", async || {
                ended = child.try_wait().unwrap().is_some();
                ended || client.get(&ready).send().await.is_ok_and(|response| response.status().is_success())
            })
            .await;
            if !ended {
                return Prometheus { url, child, folder, client };
            }
        }
        panic!("Prometheus does not start");
    }

    /// The values of an expression now.
    pub async fn ask(&self, expression: &str) -> Vec<f64> {
        let asked = self.client.get(format!("{}/api/v1/query", self.url)).query(&[("query", expression)]).send().await.unwrap();
        let answer: Value = asked.json().await.unwrap();
        assert_eq!(answer["status"], "success", "{expression}: {answer}");
        let values = answer["data"]["result"].as_array().unwrap().iter();
        values.map(|series| series["value"][1].as_str().unwrap().parse().unwrap()).collect()
    }

    /// The alarms that fire.
    pub async fn firing(&self) -> Vec<String> {
        let asked = self.client.get(format!("{}/api/v1/alerts", self.url)).send().await.unwrap();
        let answer: Value = asked.json().await.unwrap();
        let alerts = answer["data"]["alerts"].as_array().unwrap().iter();
        alerts.filter(|alert| alert["state"] == "firing").map(|alert| alert["labels"]["alertname"].as_str().unwrap().to_owned()).collect()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        _ = self.child.start_kill();
        _ = std::fs::remove_dir_all(&self.folder);
    }
}
