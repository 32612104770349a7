use std::fmt;

/// One physical index, as a place to write to.
///
/// Each index has a write alias of its own: a rebuild moves only the readers' alias, so a late write ends in the index
/// it was meant for and never in its successor.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Target {
    index: String,
}

impl Target {
    /// The place to write to in this index.
    pub fn new(index: impl Into<String>) -> Target {
        Target { index: index.into() }
    }

    /// The index itself, `annotation-000001`.
    pub fn index(&self) -> &str {
        &self.index
    }

    /// The alias that every look and every write names, `annotation-000001-write`.
    pub fn write_alias(&self) -> String {
        format!("{}-write", self.index)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.index)
    }
}
