//! For how long somebody has held vacuum back who has no clock.

use std::collections::HashMap;

use tokio::time::Instant;

use crate::standing::Holder;

/// A slot or a standby has no clock: since when has it needed the same transaction?
#[derive(Default)]
pub(super) struct StoodStill(HashMap<(String, String), (String, Instant)>);

impl StoodStill {
    /// The longest of each kind in seconds; 0 where there is none.
    pub fn held_back(&mut self, holders: &[Holder], now: Instant) -> Vec<(&'static str, f64)> {
        self.0.retain(|(by, name), _| holders.iter().any(|holder| (&holder.by, &holder.name) == (by, name)));
        let mut longest = ["session", "prepared", "slot", "standby"].map(|by| (by, 0.0));
        for holder in holders {
            // an unused slot's own clock is there since 17 only: on every server the same is told
            let clock = holder.seconds.filter(|_| holder.by != "slot");
            let seconds = clock.unwrap_or_else(|| self.since(holder, now));
            if let Some(kind) = longest.iter_mut().find(|(by, _)| *by == holder.by) {
                kind.1 = f64::max(kind.1, seconds);
            }
        }
        longest.to_vec()
    }

    fn since(&mut self, holder: &Holder, now: Instant) -> f64 {
        let xmin = holder.xmin.clone().unwrap_or_default();
        let seen = self.0.entry((holder.by.clone(), holder.name.clone())).or_insert_with(|| (xmin.clone(), now));
        if seen.0 != xmin {
            *seen = (xmin, now);
        }
        now.duration_since(seen.1).as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn holder(by: &str, seconds: Option<f64>) -> Holder {
        Holder { by: by.into(), who: String::new(), seconds, transactions: 0, name: "a".into(), xmin: None }
    }

    fn slot(xmin: &str) -> Holder {
        Holder { xmin: Some(xmin.into()), ..holder("slot", None) }
    }

    #[test]
    fn a_slot_holds_back_for_as_long_as_it_stands_still() {
        let (mut still, start) = (StoodStill::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(still.held_back(&[slot("7")], at(0))[2], ("slot", 0.0));
        assert_eq!(still.held_back(&[slot("7")], at(60))[2], ("slot", 60.0));
        assert_eq!(still.held_back(&[slot("8")], at(90))[2], ("slot", 0.0));
        assert_eq!(still.held_back(&[], at(100))[2], ("slot", 0.0));
        assert_eq!(still.held_back(&[slot("8")], at(110))[2], ("slot", 0.0), "it was gone in between");
    }

    #[test]
    fn the_longest_of_each_kind_counts_and_the_others_are_zero() {
        let session = |seconds| holder("session", Some(seconds));
        let held = StoodStill::default().held_back(&[session(3.0), session(40.0), session(5.0)], Instant::now());
        assert_eq!(held, [("session", 40.0), ("prepared", 0.0), ("slot", 0.0), ("standby", 0.0)]);
    }
}
