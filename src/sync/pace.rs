//! How many jobs a batch claims: fewer when Elasticsearch or the view cannot keep up, and more again when they can.

use std::sync::atomic::{AtomicU32, Ordering};

/// Never below this: a batch this small is no load.
const LEAST: u32 = 50;

/// The size of the next batch.
#[derive(Debug)]
pub struct Pace {
    size: AtomicU32,
    most: u32,
}

impl Pace {
    /// Starts at the configured size, which is also the most.
    pub fn new(most: u32) -> Pace {
        Pace { size: AtomicU32::new(most), most }
    }

    /// The size of the next batch.
    pub fn size(&self) -> u32 {
        self.size.load(Ordering::Relaxed)
    }

    /// Halves it.
    pub fn slower(&self) {
        self.size.store((self.size() / 2).max(LEAST.min(self.most)), Ordering::Relaxed);
    }

    /// A quarter more, up to the configured size.
    pub fn faster(&self) {
        let size = self.size();
        if size < self.most {
            self.size.store((size + size / 4 + 1).min(self.most), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Pace;

    #[test]
    fn it_halves_and_grows_back() {
        let pace = Pace::new(2500);
        pace.slower();
        assert_eq!(pace.size(), 1250);
        for _ in 0..20 {
            pace.slower();
        }
        assert_eq!(pace.size(), 50);
        for _ in 0..40 {
            pace.faster();
        }
        assert_eq!(pace.size(), 2500);
        let small = Pace::new(10);
        small.slower();
        assert_eq!(small.size(), 10);
    }
}
