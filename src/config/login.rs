use url::Url;

use super::database_url::unescaped;
use super::error::{Error, Fault};
use super::secret::Secret;
use super::variable::Variables;

/// As whom to speak to Elasticsearch: nobody, a user with a password, an API key, or a bearer token.
#[derive(Default)]
pub(super) struct Login {
    pub username: Option<String>,
    pub password: Option<Secret>,
    pub api_key: Option<Secret>,
    pub bearer_token: Option<Secret>,
}

const USERNAME: &str = "ELASTICSEARCH_USERNAME";
const PASSWORD: &str = "ELASTICSEARCH_PASSWORD";
const API_KEY: &str = "ELASTICSEARCH_API_KEY";
const BEARER_TOKEN: &str = "ELASTICSEARCH_BEARER_TOKEN";
const EXAMPLE: &str = "https://user:password@es.example:9200";
const IN_URL: &str = "a user in ELASTICSEARCH_URL";

/// Takes user and password out of the URLs, too, so that whoever prints them later prints no secret.
pub(super) fn read<G>(urls: &mut [Url], variables: &Variables<G>) -> Result<Login, Error>
where
    G: Fn(&str) -> Option<String>,
{
    let in_url = take_one_user(urls).map_err(|fault| fault.of_variable("ELASTICSEARCH_URL"))?;
    let username = variables.get(USERNAME);
    let password = variables.secret(PASSWORD)?;
    let api_key = variables.secret(API_KEY)?;
    if let Some(token) = variables.secret(BEARER_TOKEN)? {
        return match (in_url, username, password, api_key) {
            (None, None, None, None) => {
                Ok(Login { bearer_token: Some(in_a_header(token, BEARER_TOKEN, "set it as it was handed out")?), ..Login::default() })
            }
            (Some(_), ..) => Err(together(BEARER_TOKEN, IN_URL)),
            (_, Some(_), ..) => Err(together(BEARER_TOKEN, USERNAME)),
            (_, _, Some(_), _) => Err(together(BEARER_TOKEN, PASSWORD)),
            (.., Some(_)) => Err(together(BEARER_TOKEN, API_KEY)),
        };
    }
    match (in_url, username, password, api_key) {
        (None, None, None, None) => Ok(Login::default()),
        (None, None, None, Some(key)) => {
            let remedy = "set the value that Elasticsearch called encoded when it made the key";
            Ok(Login { api_key: Some(in_a_header(key, API_KEY, remedy)?), ..Login::default() })
        }
        (Some((username, password)), None, None, None) | (None, Some(username), Some(password), None) => {
            Ok(Login { username: Some(username), password: Some(Secret::new(password)), ..Login::default() })
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

/// All nodes are asked as the same user: it is enough if one of them has it.
fn take_one_user(urls: &mut [Url]) -> Result<Option<(String, String)>, Fault> {
    let taken: Result<Vec<_>, Fault> = urls.iter_mut().map(take_user).collect();
    let mut users = taken?.into_iter().flatten();
    let first = users.next();
    match users.all(|user| Some(&user) == first.as_ref()) {
        true => Ok(first),
        false => Err(Fault::new("has different users for its nodes", "write the same one, or one with the first node alone")),
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

pub(super) fn alone(name: &str, other: &str) -> Error {
    Fault::new(format!("is set without {other}"), format!("set {other} too, or neither")).of_variable(name)
}

/// It travels in a header, where a line break within would be a second header.
fn in_a_header(secret: String, name: &str, remedy: &str) -> Result<Secret, Error> {
    match secret.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(Secret::new(secret)),
        false => Err(Fault::new("has a space, a line break or a letter that cannot be sent", remedy).of_variable(name)),
    }
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
        let (name, password, key, token) = ((USERNAME, "u"), (PASSWORD, "p"), (API_KEY, "k"), (BEARER_TOKEN, "t"));
        let same = (URL, "http://u:p@127.0.0.1:1,http://127.0.0.1:2,http://u:p@127.0.0.1:3");
        let other = (URL, "http://u:p@127.0.0.1:1,http://v:p@127.0.0.1:2");
        for good in [&[here][..], &[user], &[same], &[here, name, password], &[here, key], &[here, token]] {
            settings(good).unwrap();
        }
        for (bad, text) in [
            (&[here, name][..], "ELASTICSEARCH_USERNAME is set without ELASTICSEARCH_PASSWORD"),
            (&[here, password], "ELASTICSEARCH_PASSWORD is set without ELASTICSEARCH_USERNAME"),
            (&[here, password, key], "ELASTICSEARCH_API_KEY is set together with ELASTICSEARCH_PASSWORD"),
            (&[here, name, password, key], "ELASTICSEARCH_API_KEY is set together with ELASTICSEARCH_PASSWORD"),
            (&[here, name, key], "ELASTICSEARCH_API_KEY is set together with ELASTICSEARCH_USERNAME"),
            (&[other], "ELASTICSEARCH_URL has different users for its nodes"),
            (&[here, token, key], "ELASTICSEARCH_BEARER_TOKEN is set together with ELASTICSEARCH_API_KEY"),
            (&[here, token, name], "ELASTICSEARCH_BEARER_TOKEN is set together with ELASTICSEARCH_USERNAME"),
            (&[user, token], "ELASTICSEARCH_BEARER_TOKEN is set together with a user in ELASTICSEARCH_URL"),
            (&[user, key], "ELASTICSEARCH_API_KEY is set together with a user in ELASTICSEARCH_URL"),
            (&[user, name], "ELASTICSEARCH_USERNAME is set together with a user in ELASTICSEARCH_URL"),
            (&[user, password], "ELASTICSEARCH_PASSWORD is set together with a user in ELASTICSEARCH_URL"),
        ] {
            let error = settings(bad).unwrap_err();
            assert!(error.starts_with(text), "{error}");
        }
    }

    #[test]
    fn a_key_and_a_token_fit_a_header() {
        for (name, bad) in [API_KEY, BEARER_TOKEN].into_iter().flat_map(|name| ["a b", "a\nb", "ä"].map(|bad| (name, bad))) {
            let error = settings(&[(URL, "http://127.0.0.1:9200"), (name, bad)]).unwrap_err();
            assert!(error.starts_with(&format!("{name} has a space")), "{error}");
        }
    }
}
