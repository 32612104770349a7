use std::sync::atomic::{AtomicUsize, Ordering};

use url::Url;

/// The addresses of one cluster. One of them is asked until it cannot be reached, then the next: which one is remembered, so that only the
/// first request meets the one that is down.
#[derive(Debug)]
pub(super) struct Nodes {
    /// Each ends with a slash, and holds no user-info. There is one at least.
    bases: Vec<Url>,
    asked: AtomicUsize,
}

impl Nodes {
    pub fn of(urls: &[Url]) -> Nodes {
        let with_slash = |url: &Url| {
            let mut base = url.clone();
            if !base.path().ends_with('/') {
                base.set_path(&format!("{}/", base.path()));
            }
            base
        };
        Nodes { bases: urls.iter().map(with_slash).collect(), asked: AtomicUsize::new(0) }
    }

    pub fn count(&self) -> usize {
        self.bases.len()
    }

    /// The place of the one that is asked now.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    /// The address of a path on the node at this place.
    pub fn address(&self, at: usize, path: &str) -> Option<Url> {
        let base = self.bases.get(at)?;
        let mut url = base.clone();
        url.set_path(&format!("{}{}", base.path(), path.trim_start_matches('/')));
        Some(url)
    }

    /// Leaves the node at this place; says which is the next. Others may have left it already: then they have chosen.
    pub fn leave(&self, at: usize) -> usize {
        let next = (at + 1) % self.bases.len().max(1);
        _ = self.asked.compare_exchange(at, next, Ordering::Relaxed, Ordering::Relaxed);
        next
    }

    pub fn shown(&self) -> String {
        self.bases.iter().map(Url::as_str).collect::<Vec<_>>().join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_left_once_and_the_round_ends_where_it_began() {
        let urls = ["http://a:1", "http://b:2/base", "http://c:3/"].map(|url| Url::parse(url).unwrap());
        let nodes = Nodes::of(&urls);
        assert_eq!(nodes.address(1, "/x/_bulk").unwrap().as_str(), "http://b:2/base/x/_bulk");
        assert_eq!(nodes.leave(0), 1);
        assert_eq!((nodes.leave(0), nodes.asked()), (1, 1), "left by two at the same time");
        assert_eq!((nodes.leave(1), nodes.leave(2), nodes.asked()), (2, 0, 0));
        assert_eq!(nodes.shown(), "http://a:1/,http://b:2/base/,http://c:3/");
    }
}
