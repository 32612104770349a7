//! How many jobs a batch claims: fewer when Elasticsearch or the view cannot keep up, and more again when they can.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Never below this: a batch this small is no load.
const LEAST: u32 = 50;

/// One pace for each collection: a slow view makes nobody else's batches smaller.
#[derive(Debug)]
pub(crate) struct Paces {
    of: Mutex<HashMap<String, Arc<Pace>>>,
    most: u32,
}

impl Paces {
    /// Each starts at the most.
    pub fn new(most: u32) -> Paces {
        Paces { of: Mutex::default(), most }
    }

    /// That of one collection.
    pub fn of(&self, collection: &str) -> Arc<Pace> {
        let mut paces = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        paces.entry(collection.to_owned()).or_insert_with(|| Arc::new(Pace::new(self.most))).clone()
    }
}

/// The size of the next batch.
#[derive(Debug)]
pub(crate) struct Pace {
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
    use super::{Pace, Paces};

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

    #[test]
    fn a_slow_collection_slows_nobody_else() {
        let paces = Paces::new(2500);
        paces.of("slow").slower();
        assert_eq!((paces.of("slow").size(), paces.of("other").size()), (1250, 2500));
    }
}
