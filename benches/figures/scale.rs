//! How much work a figure is given.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// As the goals name it.
    Full,
    /// Under three minutes for everything.
    Quick,
    /// A handful of rows: does it still run?
    Smoke,
}

impl Scale {
    /// `cargo bench` says `--bench`, `cargo test` does not.
    pub fn of(words: &[String]) -> Scale {
        let said = |option: &str| words.iter().any(|word| word == option);
        match (said("--bench"), said("--quick")) {
            (false, _) => Scale::Smoke,
            (true, true) => Scale::Quick,
            (true, false) => Scale::Full,
        }
    }

    pub fn pick<T>(self, full: T, quick: T, smoke: T) -> T {
        match self {
            Scale::Full => full,
            Scale::Quick => quick,
            Scale::Smoke => smoke,
        }
    }
}
