//! What a client may send: read, checked, and refused by the name of the field. No database, no HTTP.

mod change;
mod fields;
mod new;

pub use change::Change;
pub use fields::BadField;
pub use new::NewAnnotation;

use fields::Fields;

use crate::uri::normalize;

/// The longest user or group name, in bytes; the table checks the same.
const MAX_NAME_BYTES: usize = 512;
/// The longest tag, in bytes: far above any real one, far below what a keyword of the index can hold.
const MAX_TAG_BYTES: usize = 256;
/// How many tags.
pub(crate) const MAX_TAGS: usize = 100;
/// How deep a thread.
const MAX_REFERENCES: usize = 100;
/// The longest title of a page, in bytes.
const MAX_TITLE_BYTES: usize = 2_048;

/// An address as the writer gave it, and in normal form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// As given.
    pub uri: String,
    /// What search looks for.
    pub normalized: String,
}

impl Target {
    fn read(fields: &mut Fields) -> Result<Option<Self>, BadField> {
        let Some(uri) = fields.text("target_uri", 1..=usize::MAX)? else {
            return Ok(None);
        };
        let normalized = normalize(&uri).map_err(|error| BadField::new("target_uri", error.to_string()))?;
        Ok(Some(Self { uri, normalized }))
    }
}
