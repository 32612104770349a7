//! What kind of demand a job is, by its tag: few enough to count by.

/// Who asked, roughly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// A write of the application.
    Live,
    /// A reindex.
    Reindex,
    /// An audit that found a difference.
    Audit,
    /// The worker's own sign of life.
    Canary,
    /// A tag of somebody's own.
    Other,
}

impl Class {
    /// All, in the order of the documentation.
    pub const ALL: [Class; 5] = [Class::Live, Class::Reindex, Class::Audit, Class::Canary, Class::Other];

    /// The class of a tag. A tag is a word, perhaps with a dot and more.
    pub fn of(tag: &str) -> Class {
        match tag.split('.').next().unwrap_or_default() {
            "insert" | "update" | "delete" | "truncate" | "touch" => Class::Live,
            "reindex" => Class::Reindex,
            "audit" => Class::Audit,
            "canary" => Class::Canary,
            _ => Class::Other,
        }
    }

    /// As metrics show it.
    pub fn name(self) -> &'static str {
        match self {
            Class::Live => "live",
            Class::Reindex => "reindex",
            Class::Audit => "audit",
            Class::Canary => "canary",
            Class::Other => "other",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Class;

    #[test]
    fn a_tag_has_a_class() {
        for (tag, class) in [
            ("insert", Class::Live),
            ("truncate", Class::Live),
            ("touch", Class::Live),
            ("reindex.user", Class::Reindex),
            ("audit.missing", Class::Audit),
            ("canary", Class::Canary),
            ("manual", Class::Other),
            ("reindexing", Class::Other),
            ("", Class::Other),
        ] {
            assert_eq!(Class::of(tag), class, "{tag}");
        }
    }
}
