//! The recipes of docs/adopt.md, as they stand there.

use crate::common::{Layout, World};

/// The SQL and the configuration of one section.
pub struct Recipe {
    pub sql: String,
    pub toml: String,
}

/// All blocks below a heading, up to the next heading. A mapping is that of the bystander: a field `text`.
pub fn recipe(heading: &str) -> Recipe {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/adopt.md")).unwrap();
    let (_, section) = page.split_once(&format!("## {heading}\n")).unwrap_or_else(|| panic!("docs/adopt.md has no section {heading}"));
    let section = section.split("\n## ").next().unwrap();
    let blocks = |language: &str| -> String {
        let fence = format!("```{language}\n");
        section.split(&fence).skip(1).filter_map(|rest| rest.split("```").next()).collect()
    };
    let (sql, toml) = (blocks("sql"), blocks("toml"));
    assert!(!toml.is_empty(), "{heading} has no configuration");
    let line = |line: &str| if line.starts_with("mapping = ") { "mapping = \"bystander.json\"\n".to_owned() } else { format!("{line}\n") };
    Recipe { sql, toml: toml.lines().map(line).collect() }
}

impl Recipe {
    /// A world in which it was followed. `before` is what the reader has already.
    pub async fn followed(&self, before: &str) -> World {
        World::with(Layout { sql: format!("{before};\n{}", self.sql), more: self.toml.clone(), ..Layout::default() }).await
    }
}
