use url::Url;

use super::database_url::unescaped;
use super::error::{Error, Fault};
use super::secret::Secret;
use super::variable::Variables;

/// As whom to speak to Elasticsearch: nobody, a user with a password, or an API key.
#[derive(Default)]
pub(super) struct Login {
    pub username: Option<String>,
    pub password: Option<Secret>,
    pub api_key: Option<Secret>,
}

const USERNAME: &str = "ELASTICSEARCH_USERNAME";
const PASSWORD: &str = "ELASTICSEARCH_PASSWORD";
const API_KEY: &str = "ELASTICSEARCH_API_KEY";
const EXAMPLE: &str = "https://user:password@es.example:9200";
const IN_URL: &str = "a user in ELASTICSEARCH_URL";

/// Takes user and password out of the URL, too, so that whoever prints it later prints no secret.
pub(super) fn read<G>(url: &mut Url, variables: &Variables<G>) -> Result<Login, Error>
where
    G: Fn(&str) -> Option<String>,
{
    let in_url = take_user(url).map_err(|fault| fault.of_variable("ELASTICSEARCH_URL"))?;
    let username = variables.get(USERNAME);
    let password = variables.secret(PASSWORD)?;
    let api_key = variables.secret(API_KEY)?;
    match (in_url, username, password, api_key) {
        (None, None, None, None) => Ok(Login::default()),
        (None, None, None, Some(key)) => api_key_login(key),
        (Some((username, password)), None, None, None) | (None, Some(username), Some(password), None) => {
            Ok(Login { username: Some(username), password: Some(Secret::new(password)), api_key: None })
        }
        (None, Some(_), None, None) => Err(alone(USERNAME, PASSWORD)),
        (None, None, Some(_), None) => Err(alone(PASSWORD, USERNAME)),
        (Some(_), _, _, Some(_)) => Err(together(API_KEY, IN_URL)),
        (Some(_), Some(_), _, None) => Err(together(USERNAME, IN_URL)),
        (Some(_), None, Some(_), None) => Err(together(PASSWORD, IN_URL)),
        (None, _, Some(_), Some(_)) => Err(together(API_KEY, PASSWORD)),
        (None, Some(_), None, Some(_)) => Err(together(API_KEY, USERNAME)),
    }
}

fn take_user(url: &mut Url) -> Result<Option<(String, String)>, Fault> {
    let (username, password) = (url.username().to_owned(), url.password().map(str::to_owned));
    // cannot fail on http and https, which always have a host
    let _ = url.set_username("");
    let _ = url.set_password(None);
    match (username.as_str(), password) {
        ("", None) => Ok(None),
        ("", Some(_)) => Err(Fault::new("has a password without a user", unescaped(EXAMPLE))),
        (_, None) => Err(Fault::new("has a user without a password", unescaped(EXAMPLE))),
        (username, Some(password)) => match (decoded(username), decoded(&password)) {
            (Some(username), Some(password)) => Ok(Some((username, password))),
            _ => Err(Fault::new("has a user or password that is not UTF-8", unescaped(EXAMPLE))),
        },
    }
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        bytes.extend_from_slice(before.as_bytes());
        let digits = after.get(..2).filter(|two| two.bytes().all(|byte| byte.is_ascii_hexdigit()));
        match digits.and_then(|two| u8::from_str_radix(two, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(b'%');
                rest = after;
            }
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8(bytes).ok()
}

fn together(name: &str, other: &str) -> Error {
    let problem = format!("is set together with {other}");
    Fault::new(problem, "keep one of them: there is one way to log in").of_variable(name)
}

fn alone(name: &str, other: &str) -> Error {
    Fault::new(format!("is set without {other}"), format!("set {other} too, or neither")).of_variable(name)
}

/// The key travels in a header, where a line break within would be a second header.
fn api_key_login(key: String) -> Result<Login, Error> {
    if key.bytes().all(|byte| byte.is_ascii_graphic()) {
        let api_key = Some(Secret::new(key));
        return Ok(Login { api_key, ..Login::default() });
    }
    let remedy = "set the value that Elasticsearch called encoded when it made the key";
    Err(Fault::new("has a space, a line break or a letter that no key has", remedy).of_variable(API_KEY))
}

#[cfg(test)]
mod tests {
    use super::super::elasticsearch::{self, ElasticsearchSettings};
    use super::super::environment::Tls;
    use super::super::scratch::lookup;
    use super::*;

    const URL: &str = "ELASTICSEARCH_URL";

    fn settings(pairs: &[(&str, &str)]) -> Result<ElasticsearchSettings, String> {
        let settings = elasticsearch::read(&Variables(lookup(pairs)), Tls::Verified);
        settings.map_err(|error| error.to_string())
    }

    #[test]
    fn a_user_in_the_url_is_moved_out_of_it() {
        let given = settings(&[(URL, "https://el%40stic:p%2Fw%25%zz%+5@es.example/proxy")]).unwrap();
        assert_eq!(given.url, "https://es.example/proxy");
        assert_eq!(given.username.as_deref(), Some("el@stic"));
        assert_eq!(given.password.unwrap().expose(), "p/w%%zz%+5");
        assert!(given.api_key.is_none());
    }

    #[test]
    fn there_is_one_way_to_log_in() {
        let here = (URL, "http://127.0.0.1:9200");
        let user = (URL, "http://u:p@127.0.0.1:9200");
        let (name, password, key) = ((USERNAME, "u"), (PASSWORD, "p"), (API_KEY, "k"));
        for good in [&[here][..], &[user], &[here, name, password], &[here, key]] {
            settings(good).unwrap();
        }
        for (bad, text) in [
            (&[here, name][..], "ELASTICSEARCH_USERNAME is set without ELASTICSEARCH_PASSWORD"),
            (&[here, password], "ELASTICSEARCH_PASSWORD is set without ELASTICSEARCH_USERNAME"),
            (&[here, password, key], "ELASTICSEARCH_API_KEY is set together with ELASTICSEARCH_PASSWORD"),
            (&[here, name, password, key], "ELASTICSEARCH_API_KEY is set together with ELASTICSEARCH_PASSWORD"),
            (&[here, name, key], "ELASTICSEARCH_API_KEY is set together with ELASTICSEARCH_USERNAME"),
            (&[user, key], "ELASTICSEARCH_API_KEY is set together with a user in ELASTICSEARCH_URL"),
            (&[user, name], "ELASTICSEARCH_USERNAME is set together with a user in ELASTICSEARCH_URL"),
            (&[user, password], "ELASTICSEARCH_PASSWORD is set together with a user in ELASTICSEARCH_URL"),
        ] {
            let error = settings(bad).unwrap_err();
            assert!(error.starts_with(text), "{error}");
        }
    }

    #[test]
    fn an_api_key_fits_a_header() {
        for bad in ["a b", "a\nb", "ä"] {
            let error = settings(&[(URL, "http://127.0.0.1:9200"), (API_KEY, bad)]).unwrap_err();
            assert!(error.starts_with("ELASTICSEARCH_API_KEY has a space"), "{error}");
        }
    }
}
