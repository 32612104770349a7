//! Where Elasticsearch takes no more writes to an index because a disk is nearly full.

use serde_json::Value;

/// How much of a disk must stay free.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum FloodStage {
    /// Nobody looks: `threshold_enabled` is false.
    Off,
    Bytes(f64),
    /// A share of the disk, and so many bytes at most.
    Share(f64, Option<f64>),
}

/// Elasticsearch's own, where a setting cannot be read.
const USUAL: FloodStage = FloodStage::Share(0.05, None);

impl FloodStage {
    /// From `_cluster/settings`, the defaults included: what was set later stands before what was set earlier.
    pub fn of(settings: &Value) -> FloodStage {
        let disks = ["transient", "persistent", "defaults"].map(|kind| &settings[kind]["cluster"]["routing"]["allocation"]["disk"]);
        let first = |read: &dyn Fn(&Value) -> Option<String>| disks.iter().find_map(|disk| read(disk));
        let text = |value: &Value| value.as_str().map(str::to_owned);
        if first(&|disk| text(&disk["threshold_enabled"])).as_deref() == Some("false") {
            return FloodStage::Off;
        }
        let stage = first(&|disk| text(&disk["watermark"]["flood_stage"]));
        // a setting below another is written with a dot where that one is set too, and within it where it is not
        let most = first(&|disk| {
            let watermark = &disk["watermark"];
            text(&watermark["flood_stage.max_headroom"]).or_else(|| text(&watermark["flood_stage"]["max_headroom"]))
        });
        let most = most.and_then(|most| bytes(&most));
        let Some(stage) = stage else { return USUAL };
        match (share(&stage), bytes(&stage)) {
            (Some(used), _) => FloodStage::Share(1.0 - used, most),
            (None, Some(free)) => FloodStage::Bytes(free),
            (None, None) => USUAL,
        }
    }

    /// Bytes of a disk of this size that cannot be written to.
    pub fn kept_free(self, total: u64) -> u64 {
        let free = match self {
            FloodStage::Off => 0.0,
            FloodStage::Bytes(free) => free,
            FloodStage::Share(share, most) => (total as f64 * share).min(most.unwrap_or(f64::INFINITY)),
        };
        free.round() as u64
    }
}

/// `95%` or `0.95`: what may be used.
fn share(text: &str) -> Option<f64> {
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().ok()? / 100.0,
        None => text.trim().parse::<f64>().ok()?,
    };
    (0.0..=1.0).contains(&share).then_some(share)
}

/// `100GB`, in units of 1,024. `-1` is no limit.
fn bytes(text: &str) -> Option<f64> {
    let text = text.trim().to_ascii_lowercase();
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic())?);
    let power = ["b", "kb", "mb", "gb", "tb", "pb"].iter().position(|known| *known == unit)?;
    let number = number.trim().parse::<f64>().ok()?;
    (number >= 0.0).then(|| number * 1024_f64.powi(power as i32))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const GB: u64 = 1 << 30;

    fn said(kind: &str, disk: Value) -> Value {
        json!({ kind: { "cluster": { "routing": { "allocation": { "disk": disk } } } } })
    }

    #[test]
    fn a_cluster_says_how_much_of_a_disk_stays_free() {
        // by 9.4.3
        let usual = json!({ "threshold_enabled": "true", "watermark": { "flood_stage": "95%", "flood_stage.max_headroom": "100GB" } });
        let usual = said("defaults", usual);
        assert_eq!(FloodStage::of(&usual).kept_free(1000 * GB), 50 * GB);
        assert_eq!(FloodStage::of(&usual).kept_free(10_000 * GB), 100 * GB);
        for (set, kept) in [
            (json!({ "watermark": { "flood_stage": "0.9", "flood_stage.max_headroom": "-1" } }), 1000 * GB),
            (json!({ "watermark": { "flood_stage": "2.5tb" } }), 2560 * GB),
            (json!({ "watermark": { "flood_stage": { "max_headroom": "10gb" } } }), 10 * GB),
            (json!({ "threshold_enabled": "false" }), 0),
        ] {
            let mut both = usual.clone();
            both["persistent"] = said("persistent", set.clone())["persistent"].clone();
            assert_eq!(FloodStage::of(&both).kept_free(10_000 * GB), kept, "{set}");
        }
        assert_eq!(FloodStage::of(&json!({})), USUAL);
        assert_eq!(FloodStage::of(&said("defaults", json!({ "watermark": { "flood_stage": "soon" } }))), USUAL);
    }
}
