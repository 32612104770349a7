use super::fields::{BadField, Fields};
use super::{MAX_NAME_BYTES, MAX_TAG_BYTES, MAX_TAGS, Target};

/// What a client wants to change; a field that is not named stays as it is.
///
/// Who wrote an annotation and what it replies to cannot change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// Whom it is for.
    pub groupid: Option<String>,
    /// What it says.
    pub text: Option<String>,
    /// All its tags, not only new ones.
    pub tags: Option<Vec<String>>,
    /// The page.
    pub target: Option<Target>,
    /// Whether others may see it.
    pub shared: Option<bool>,
}

impl Change {
    /// Reads the body of a request.
    pub fn read(body: &[u8]) -> Result<Self, BadField> {
        let mut fields = Fields::parse(body)?;
        let change = Self {
            groupid: fields.text("groupid", 1..=MAX_NAME_BYTES)?,
            text: fields.text("text", 0..=usize::MAX)?,
            tags: fields.texts("tags", MAX_TAGS, 1..=MAX_TAG_BYTES)?,
            target: Target::read(&mut fields)?,
            shared: fields.boolean("shared")?,
        };
        fields.end("groupid, text, tags, target_uri and shared")?;
        if change == Self::default() {
            return Err(BadField::new("body", "changes nothing; name one of groupid, text, tags, target_uri and shared"));
        }
        Ok(change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_named_changes() {
        let change = Change::read(br#"{ "text": "", "tags": [] }"#).unwrap();
        assert_eq!(change, Change { text: Some(String::new()), tags: Some(vec![]), ..Change::default() });
    }

    #[test]
    fn a_refusal_names_the_field() {
        for (body, field) in [
            (r#"{ "userid": "somebody else" }"#, "userid"),
            (r#"{ "references": [] }"#, "references"),
            (r#"{ "text": null }"#, "text"),
            (r#"{ "target_uri": "nowhere" }"#, "target_uri"),
            (r#"{ "deleted": true }"#, "deleted"),
            ("{}", "body"),
            ("7", "body"),
        ] {
            assert_eq!(Change::read(body.as_bytes()).unwrap_err().field, field, "{body}");
        }
    }
}
