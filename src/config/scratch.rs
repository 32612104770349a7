//! What the tests of this folder share.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

/// A folder for one test, gone with it.
pub(super) struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Scratch {
        let folder = std::env::temp_dir().join(format!("catchword-config-{}", uuid::Uuid::new_v4()));
        fs::create_dir(&folder).unwrap();
        Scratch(folder)
    }

    pub fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// An environment of these variables alone.
pub(super) fn lookup(pairs: &[(&str, &str)]) -> impl Fn(&str) -> Option<String> + use<> {
    let owned = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
    let pairs: HashMap<String, String> = pairs.iter().map(owned).collect();
    move |name| pairs.get(name).cloned()
}
