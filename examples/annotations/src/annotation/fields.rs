use std::ops::RangeInclusive;

use serde_json::{Map, Value};
use uuid::Uuid;

/// A field that cannot be taken as it is: its name, and what is wrong with it, so that `field`
/// followed by `problem` reads as a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} {problem}")]
pub struct BadField {
    /// The field's name as the client wrote it; `body` for the whole.
    pub field: String,
    /// What is wrong, and what to send instead.
    pub problem: String,
}

impl BadField {
    pub(crate) fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { field: field.into(), problem: problem.into() }
    }
}

/// A JSON object whose fields are taken out one by one.
///
/// By hand and not by `derive`: an error must name the field, also for a wrong type, and what is
/// left at the end is a field that nobody knows. A misspelled one must not be dropped silently.
pub(super) struct Fields {
    left: Map<String, Value>,
    /// `document.` inside the object `document`, else empty
    path: String,
}

impl Fields {
    pub(super) fn parse(body: &[u8]) -> Result<Self, BadField> {
        match serde_json::from_slice(body) {
            Ok(Value::Object(left)) => Ok(Self { left, path: String::new() }),
            Ok(_) => Err(BadField::new("body", "must be a JSON object")),
            Err(error) => Err(BadField::new("body", format!("is not JSON: {error}"))),
        }
    }

    /// A string whose length in bytes is in `length`.
    pub(super) fn text(&mut self, name: &str, length: RangeInclusive<usize>) -> Result<Option<String>, BadField> {
        match self.left.remove(name) {
            None => Ok(None),
            Some(Value::String(text)) => self.storable(name, text, length).map(Some),
            Some(_) => Err(self.bad(name, "must be a string")),
        }
    }

    pub(super) fn boolean(&mut self, name: &str) -> Result<Option<bool>, BadField> {
        match self.left.remove(name) {
            None => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(value)),
            Some(_) => Err(self.bad(name, "must be true or false")),
        }
    }

    /// A list of at most `most` strings, each with its length in bytes in `length`.
    pub(super) fn texts(&mut self, name: &str, most: usize, length: RangeInclusive<usize>) -> Result<Option<Vec<String>>, BadField> {
        let Some(items) = self.items(name, most)? else { return Ok(None) };
        let texts = items.into_iter().map(|item| match item {
            Value::String(text) => self.storable(name, text, length.clone()),
            _ => Err(self.bad(name, "must be a list of strings")),
        });
        texts.collect::<Result<_, _>>().map(Some)
    }

    /// A list of at most `most` ids.
    pub(super) fn ids(&mut self, name: &str, most: usize) -> Result<Option<Vec<Uuid>>, BadField> {
        let Some(items) = self.items(name, most)? else { return Ok(None) };
        let ids = items.iter().map(|item| {
            let id = item.as_str().and_then(|text| text.parse().ok());
            id.ok_or_else(|| self.bad(name, "must be a list of ids of annotations (uuids)"))
        });
        ids.collect::<Result<_, _>>().map(Some)
    }

    /// An object inside this one.
    pub(super) fn object(&mut self, name: &str) -> Result<Option<Fields>, BadField> {
        match self.left.remove(name) {
            None => Ok(None),
            Some(Value::Object(left)) => Ok(Some(Self { left, path: format!("{}{name}.", self.path) })),
            Some(_) => Err(self.bad(name, "must be an object")),
        }
    }

    /// Everything known was taken: what is left is a mistake.
    pub(super) fn end(self, known: &str) -> Result<(), BadField> {
        match self.left.keys().next() {
            None => Ok(()),
            Some(name) => Err(self.bad(name, &format!("cannot be set; what can is {known}"))),
        }
    }

    fn items(&mut self, name: &str, most: usize) -> Result<Option<Vec<Value>>, BadField> {
        match self.left.remove(name) {
            None => Ok(None),
            Some(Value::Array(items)) if items.len() <= most => Ok(Some(items)),
            Some(Value::Array(items)) => Err(self.bad(name, &format!("has {} entries, and at most {most} are taken", items.len()))),
            Some(_) => Err(self.bad(name, "must be a list")),
        }
    }

    fn storable(&self, name: &str, text: String, length: RangeInclusive<usize>) -> Result<String, BadField> {
        // Postgres' text holds every character but this one, and would fail the whole write
        if text.contains('\0') {
            return Err(self.bad(name, "must not contain the character U+0000"));
        }
        if text.len() < *length.start() {
            return Err(self.bad(name, "must not be empty"));
        }
        if text.len() > *length.end() {
            return Err(self.bad(name, &format!("is longer than {} bytes", length.end())));
        }
        Ok(text)
    }

    fn bad(&self, name: &str, problem: &str) -> BadField {
        BadField::new(format!("{}{name}", self.path), problem)
    }
}
