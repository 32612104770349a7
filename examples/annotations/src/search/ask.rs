use crate::annotation::{BadField, MAX_TAGS};
use crate::uri::normalize;

/// How many annotations an answer holds unless the client says.
const DEFAULT_LIMIT: usize = 20;
/// How many it holds at most.
const MAX_LIMIT: usize = 200;
/// How far one can page: Elasticsearch's own limit, and nobody reads that far.
const MAX_WINDOW: usize = 10_000;
/// The longest value of a parameter in bytes; a longer one is no search but an accident.
const MAX_VALUE_BYTES: usize = 2_048;

/// What a client looks for; everything that is named must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// On this page, in normal form.
    pub url: Option<String>,
    /// By this user.
    pub user: Option<String>,
    /// For this group.
    pub group: Option<String>,
    /// With all of these tags, whatever their case.
    pub tags: Vec<String>,
    /// With all of these words, in its text or its page's title.
    pub q: Option<String>,
    /// At most so many.
    pub limit: usize,
    /// After so many.
    pub offset: usize,
}

impl Ask {
    /// Reads the parameters of a request; only `tag` may come more than once.
    pub fn read(parameters: impl IntoIterator<Item = (String, String)>) -> Result<Self, BadField> {
        let (mut url, mut user, mut group, mut q, mut limit, mut offset) = (None, None, None, None, None, None);
        let mut tags = Vec::new();
        for (name, value) in parameters {
            if value.len() > MAX_VALUE_BYTES {
                return Err(BadField::new(name, format!("is longer than {MAX_VALUE_BYTES} bytes")));
            }
            let place = match name.as_str() {
                "tag" => {
                    tags.push(value);
                    continue;
                }
                "url" => &mut url,
                "user" => &mut user,
                "group" => &mut group,
                "q" => &mut q,
                "limit" => &mut limit,
                "offset" => &mut offset,
                _ => {
                    let known = "is not known; search takes url, user, group, tag, q, limit and offset";
                    return Err(BadField::new(name, known));
                }
            };
            if place.replace(value).is_some() {
                return Err(BadField::new(name, "is given twice"));
            }
        }
        if tags.len() > MAX_TAGS {
            return Err(BadField::new("tag", format!("is given more than {MAX_TAGS} times; no annotation has so many")));
        }
        let url = url.map(|url| normalize(&url).map_err(|error| BadField::new("url", error.to_string())));
        let limit = number("limit", limit, MAX_LIMIT)?.unwrap_or(DEFAULT_LIMIT);
        let offset = number("offset", offset, MAX_WINDOW)?.unwrap_or(0);
        if limit + offset > MAX_WINDOW {
            return Err(BadField::new("offset", format!("and limit together go beyond {MAX_WINDOW}; narrow the search")));
        }
        // an empty search box asks for nothing in particular; Elasticsearch would find nothing at all
        let q = q.filter(|words| !words.trim().is_empty());
        Ok(Self { url: url.transpose()?, user, group, tags, q, limit, offset })
    }
}

fn number(name: &str, value: Option<String>, most: usize) -> Result<Option<usize>, BadField> {
    let Some(value) = value else { return Ok(None) };
    match value.parse() {
        // `parse` takes a sign
        Ok(number) if number <= most && !value.starts_with('+') => Ok(Some(number)),
        _ => Err(BadField::new(name, format!("must be a whole number from 0 to {most}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(parameters: &[(&str, &str)]) -> Result<Ask, BadField> {
        Ask::read(parameters.iter().map(|(name, value)| (name.to_string(), value.to_string())))
    }

    #[test]
    fn nothing_asked_is_everything_newest_first() {
        let ask = read(&[]).unwrap();
        assert_eq!((ask.limit, ask.offset, ask.url, ask.tags.len()), (20, 0, None, 0));
        assert_eq!(read(&[("q", " ")]).unwrap().q, None);
    }

    #[test]
    fn a_url_is_asked_in_normal_form_and_tags_add_up() {
        let ask = read(&[("url", "http://EXAMPLE.org/a/#b"), ("tag", "x"), ("tag", "y")]).unwrap();
        assert_eq!(ask.url.as_deref(), Some("https://example.org/a"));
        assert_eq!(ask.tags, ["x", "y"]);
    }

    #[test]
    fn a_refusal_names_the_parameter() {
        let long = "x".repeat(3_000);
        for (parameters, field) in [
            (&[("limit", "201")][..], "limit"),
            (&[("limit", "-1")], "limit"),
            (&[("limit", "+1")], "limit"),
            (&[("limit", "")], "limit"),
            (&[("limit", "ten")], "limit"),
            (&[("offset", "1.5")], "offset"),
            (&[("offset", "99999999999999999999")], "offset"),
            (&[("offset", "9990")], "offset"),
            (&[("url", "nowhere")], "url"),
            (&[("q", &long)], "q"),
            (&[("user", "a"), ("user", "b")], "user"),
            (&[("uri", "https://example.org")], "uri"),
        ] {
            assert_eq!(read(parameters).unwrap_err().field, field, "{parameters:?}");
        }
        assert!(read(&[("offset", "9980"), ("limit", "20")]).is_ok());
    }
}
