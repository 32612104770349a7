use std::ops::RangeInclusive;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{Error, Fault};
use super::near;

/// The file being read; knows the line of a byte.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub file: &'a Path,
    pub text: &'a str,
}

/// A key that a section may have, and a line that would be right: it is what an error tells to write.
pub(super) struct Key {
    pub name: &'static str,
    pub example: &'static str,
}

/// One table of the file. It is walked by hand rather than with serde, because then every refusal, also of a value with
/// the right type, knows its line and its section.
pub(super) struct Section<'a> {
    pub source: Source<'a>,
    title: String,
    table: &'a DeTable<'a>,
    at: usize,
    keys: &'static [Key],
}

/// Judges a text.
pub(super) type Rule = fn(&str) -> Result<(), Fault>;

impl<'a> Section<'a> {
    /// A table without unknown keys, whose header stands at byte `at`.
    pub fn new(source: Source<'a>, title: String, table: &'a DeTable<'a>, at: usize, keys: &'static [Key]) -> Result<Section<'a>, Error> {
        let section = Section { source, title, table, at, keys };
        let unknown = table.keys().filter(|key| section.example(key.get_ref()).is_none());
        match unknown.min_by_key(|key| key.span().start) {
            None => Ok(section),
            Some(key) => {
                let known = keys.iter().map(|key| key.name);
                let fault = near::unknown_key(key.get_ref(), known);
                Err(section.refuse(key.get_ref(), key.span().start, fault))
            }
        }
    }

    pub fn required_text(&self, key: &str, rule: Rule) -> Result<String, Error> {
        self.text(key, rule)?.ok_or_else(|| self.missing(key))
    }

    pub fn text(&self, key: &str, rule: Rule) -> Result<Option<String>, Error> {
        self.parsed(key, |text| rule(text).map(|()| text.to_owned()))
    }

    /// The text of a value that stands within `key` (`scopes.user`).
    pub fn text_of(&self, key: &str, value: &Spanned<DeValue>, rule: Rule) -> Result<String, Error> {
        self.parsed_of(key, value, |text| rule(text).map(|()| text.to_owned()))
    }

    pub fn parsed<T>(&self, key: &str, parse: impl Fn(&str) -> Result<T, Fault>) -> Result<Option<T>, Error> {
        self.table.get(key).map(|value| self.parsed_of(key, value, parse)).transpose()
    }

    /// The same of what can be "off": who writes `false` means that.
    pub fn parsed_or_off<T>(&self, key: &str, parse: impl Fn(&str) -> Result<T, Fault>) -> Result<Option<T>, Error> {
        match self.table.get(key).filter(|value| value.get_ref().as_bool() == Some(false)) {
            Some(value) => {
                let fault = Fault::new("cannot be true or false", format!("write {key} = \"off\""));
                Err(self.refuse(key, value.span().start, fault))
            }
            None => self.parsed(key, parse),
        }
    }

    fn parsed_of<T>(&self, key: &str, value: &Spanned<DeValue>, parse: impl Fn(&str) -> Result<T, Fault>) -> Result<T, Error> {
        let text = value.get_ref().as_str().ok_or_else(|| self.wrong_type(key, value))?;
        parse(text).map_err(|fault| self.refuse(key, value.span().start, fault))
    }

    pub fn truth(&self, key: &str) -> Result<Option<bool>, Error> {
        self.table.get(key).map(|value| value.get_ref().as_bool().ok_or_else(|| self.wrong_type(key, value))).transpose()
    }

    pub fn number(&self, key: &str, range: RangeInclusive<u32>) -> Result<Option<u32>, Error> {
        let Some(value) = self.table.get(key) else {
            return Ok(None);
        };
        let DeValue::Integer(written) = value.get_ref() else {
            return Err(self.wrong_type(key, value));
        };
        match u32::from_str_radix(written.as_str(), written.radix()) {
            Ok(number) if range.contains(&number) => Ok(Some(number)),
            _ => {
                let (least, most) = (range.start(), range.end());
                let remedy = format!("write a number from {least} to {most}");
                let fault = Fault::new(format!("is {written}"), remedy);
                Err(self.refuse(key, value.span().start, fault))
            }
        }
    }

    /// A part of a whole: above 0, at most 1.
    pub fn share(&self, key: &str) -> Result<Option<f64>, Error> {
        let Some(value) = self.table.get(key) else {
            return Ok(None);
        };
        let written = match value.get_ref() {
            DeValue::Float(written) => written.as_str(),
            DeValue::Integer(written) => written.as_str(),
            _ => return Err(self.wrong_type(key, value)),
        };
        match written.replace('_', "").parse() {
            Ok(share) if share > 0.0 && share <= 1.0 => Ok(Some(share)),
            _ => {
                let fault = Fault::new(format!("is {written}"), "write a number above 0, and 1 at most: 0.5 is a half");
                Err(self.refuse(key, value.span().start, fault))
            }
        }
    }

    pub fn list(&self, key: &str) -> Result<Option<&'a [Spanned<DeValue<'a>>]>, Error> {
        let Some(value) = self.table.get(key) else {
            return Ok(None);
        };
        match value.get_ref() {
            DeValue::Array(list) => Ok(Some(list)),
            _ => Err(self.wrong_type(key, value)),
        }
    }

    /// One text, or a list of them. None of them: an empty list.
    pub fn one_or_more(&self, key: &str, rule: Rule) -> Result<Vec<String>, Error> {
        match self.table.get(key).map(Spanned::get_ref) {
            None => Ok(Vec::new()),
            Some(DeValue::Array(list)) if list.is_empty() => Err(self.missing(key)),
            Some(DeValue::Array(list)) => list.iter().map(|value| self.text_of(key, value, rule)).collect(),
            Some(_) => Ok(self.text(key, rule)?.into_iter().collect()),
        }
    }

    /// Where a key stands; where it does not, its section.
    pub fn at(&self, key: &str) -> usize {
        self.table.get(key).map_or(self.at, |value| value.span().start)
    }

    pub fn table(&self, key: &str) -> Result<Option<(usize, &'a DeTable<'a>)>, Error> {
        let Some(value) = self.table.get(key) else {
            return Ok(None);
        };
        match value.get_ref() {
            DeValue::Table(table) => Ok(Some((value.span().start, table))),
            _ => Err(self.wrong_type(key, value)),
        }
    }

    pub fn missing(&self, key: &str) -> Error {
        let remedy = format!("add {}", self.example(key).unwrap_or(key));
        self.refuse(key, self.at, Fault::new("is missing", remedy))
    }

    pub fn wrong_type(&self, key: &str, value: &Spanned<DeValue>) -> Error {
        let outer = key.split('.').next().unwrap_or(key);
        let remedy = format!("write {}", self.example(outer).unwrap_or(key));
        let fault = Fault::new(format!("cannot be {}", kind(value.get_ref())), remedy);
        self.refuse(key, value.span().start, fault)
    }

    pub fn refuse(&self, key: &str, at: usize, fault: Fault) -> Error {
        let key = match self.title.as_str() {
            "" => key.to_owned(),
            title => format!("{title}: {key}"),
        };
        let Fault { problem, remedy } = fault;
        Error::Refused { file: self.source.file.to_owned(), line: self.source.line(at), key, problem, remedy }
    }

    pub fn title(&self) -> &str {
        &self.title
    }

    fn example(&self, key: &str) -> Option<&'static str> {
        self.keys.iter().find(|known| known.name == key).map(|known| known.example)
    }
}

impl Source<'_> {
    pub fn not_toml(&self, error: &toml::de::Error) -> Error {
        Error::NotToml {
            file: self.file.to_owned(),
            line: self.line(error.span().map_or(0, |span| span.start)),
            problem: error.message().replace('\n', " "),
        }
    }

    fn line(&self, at: usize) -> usize {
        1 + self.text.bytes().take(at).filter(|byte| *byte == b'\n').count()
    }
}

fn kind(value: &DeValue) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a number",
        DeValue::Float(_) => "a number with a decimal point",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
