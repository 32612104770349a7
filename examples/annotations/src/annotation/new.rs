use uuid::Uuid;

use super::fields::{BadField, Fields};
use super::{MAX_NAME_BYTES, MAX_REFERENCES, MAX_TAG_BYTES, MAX_TAGS, MAX_TITLE_BYTES, Target};

/// Whom an annotation is for when the client does not say: everybody.
const WORLD: &str = "__world__";

/// An annotation that a client wants to save.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAnnotation {
    /// Who writes.
    pub userid: String,
    /// Whom it is for; `__world__` unless said.
    pub groupid: String,
    /// What it says; empty unless said.
    pub text: String,
    /// None unless said.
    pub tags: Vec<String>,
    /// The page.
    pub target: Target,
    /// What it replies to; nothing unless said.
    pub references: Vec<Uuid>,
    /// True unless said.
    pub shared: bool,
    /// The page's title, if the client knows it.
    pub title: Option<String>,
}

impl NewAnnotation {
    /// Reads the body of a request.
    pub fn read(body: &[u8]) -> Result<Self, BadField> {
        let mut fields = Fields::parse(body)?;
        let missing = |name| BadField::new(name, "is missing");
        let new = Self {
            userid: fields.text("userid", 1..=MAX_NAME_BYTES)?.ok_or_else(|| missing("userid"))?,
            target: Target::read(&mut fields)?.ok_or_else(|| missing("target_uri"))?,
            groupid: fields.text("groupid", 1..=MAX_NAME_BYTES)?.unwrap_or_else(|| WORLD.to_owned()),
            text: fields.text("text", 0..=usize::MAX)?.unwrap_or_default(),
            tags: fields.texts("tags", MAX_TAGS, 1..=MAX_TAG_BYTES)?.unwrap_or_default(),
            references: fields.ids("references", MAX_REFERENCES)?.unwrap_or_default(),
            shared: fields.boolean("shared")?.unwrap_or(true),
            title: title(&mut fields)?,
        };
        fields.end("userid, target_uri, groupid, text, tags, references, shared and document.title")?;
        Ok(new)
    }
}

impl NewAnnotation {
    /// What is asked for, whatever the order and the spaces of the client's JSON.
    pub fn to_json(&self) -> String {
        let Self { userid, groupid, text, tags, target, references, shared, title } = self;
        let (target, normalized) = (&target.uri, &target.normalized);
        serde_json::json!([userid, groupid, text, tags, target, normalized, references, shared, title]).to_string()
    }
}

fn title(fields: &mut Fields) -> Result<Option<String>, BadField> {
    let Some(mut document) = fields.object("document")? else {
        return Ok(None);
    };
    let title = document.text("title", 1..=MAX_TITLE_BYTES)?;
    document.end("document.title")?;
    Ok(title)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(body: Value) -> Result<NewAnnotation, BadField> {
        NewAnnotation::read(body.to_string().as_bytes())
    }

    #[test]
    fn a_user_and_a_page_are_enough() {
        let new = read(json!({ "userid": "acct:mina@example.org", "target_uri": "http://Example.org/a/" })).unwrap();
        assert_eq!(new.groupid, "__world__");
        assert_eq!((new.text.as_str(), new.tags.len(), new.references.len()), ("", 0, 0));
        assert_eq!(new.target.uri, "http://Example.org/a/");
        assert_eq!(new.target.normalized, "https://example.org/a");
        assert!(new.shared);
        assert_eq!(new.title, None);
    }

    #[test]
    fn everything_that_can_be_said_is_taken() {
        let parent = Uuid::from_u128(7);
        let new = read(json!({
            "userid": "u", "target_uri": "urn:x-pdf:1", "groupid": "g", "text": "what\nit says", "tags": ["a", "b"],
            "references": [parent], "shared": false, "document": { "title": "A page" },
        }))
        .unwrap();
        assert_eq!((new.groupid.as_str(), new.text.as_str()), ("g", "what\nit says"));
        assert_eq!((new.tags, new.references), (vec!["a".to_owned(), "b".to_owned()], vec![parent]));
        assert_eq!((new.shared, new.title.as_deref()), (false, Some("A page")));
    }

    #[test]
    fn a_refusal_names_the_field() {
        let long = "x".repeat(5_000);
        for (name, value, field) in [
            ("userid", json!(7), "userid"),
            ("userid", json!(""), "userid"),
            ("userid", json!(long), "userid"),
            ("userid", json!("a\0b"), "userid"),
            ("userid", json!(null), "userid"),
            ("groupid", json!(""), "groupid"),
            ("target_uri", json!("not an address"), "target_uri"),
            ("target_uri", json!(""), "target_uri"),
            ("target_uri", json!("javascript:alert(1)"), "target_uri"),
            ("target_uri", json!(["https://example.org"]), "target_uri"),
            ("text", json!(["a"]), "text"),
            ("text", json!("nul \0"), "text"),
            ("tags", json!("one"), "tags"),
            ("tags", json!([1]), "tags"),
            ("tags", json!([""]), "tags"),
            ("tags", json!([long]), "tags"),
            ("tags", json!(vec!["t"; 101]), "tags"),
            ("references", json!(["not-an-id"]), "references"),
            ("references", json!([null]), "references"),
            ("shared", json!("yes"), "shared"),
            ("document", json!("A page"), "document"),
            ("document", json!({ "title": 1 }), "document.title"),
            ("document", json!({ "web_uri": "https://example.org" }), "document.web_uri"),
            ("id", json!(Uuid::from_u128(1)), "id"),
            ("user", json!("mina"), "user"),
        ] {
            let mut body = json!({ "userid": "u", "target_uri": "https://example.org/a" });
            body[name] = value;
            assert_eq!(read(body.clone()).unwrap_err().field, field, "{body}");
        }
    }

    #[test]
    fn what_is_missing_is_named_and_what_is_no_object_too() {
        assert_eq!(read(json!({ "target_uri": "https://example.org/a" })).unwrap_err().field, "userid");
        assert_eq!(read(json!({ "userid": "u" })).unwrap_err().field, "target_uri");
        assert_eq!(read(json!([])).unwrap_err().field, "body");
        assert_eq!(NewAnnotation::read(b"").unwrap_err().field, "body");
        assert_eq!(NewAnnotation::read(b"{\"userid\": \"\\ud800\"}").unwrap_err().field, "body");
        assert_eq!(NewAnnotation::read(&[b'['; 20_000]).unwrap_err().field, "body");
    }
}
