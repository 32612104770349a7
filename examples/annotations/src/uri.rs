//! Addresses in normal form, so that the many spellings of one page meet.

use url::Url;

/// The longest address in bytes, in either form; the tables check the same.
///
/// It is an entry of a btree (2,704 bytes at most) and a keyword of the index.
pub const MAX_URI_BYTES: usize = 2_048;

/// Schemes of things people annotate: pages, PDFs by fingerprint, publications.
///
/// A list of what is let in, since an address is later shown as a link: `javascript:` must not be.
const SCHEMES: [&str; 4] = ["http", "https", "urn", "doi"];

/// Why an address cannot be normalised; each says what to give instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UriError {
    /// It is not an absolute address.
    #[error("is not an absolute address such as https://example.org/page ({0})")]
    NotAbsolute(url::ParseError),
    /// Its scheme is none that can be annotated.
    #[error("has the scheme {0:?}; known are http, https, urn and doi")]
    Scheme(String),
    /// It is too long, as given or in normal form.
    #[error("is longer than {MAX_URI_BYTES} bytes")]
    TooLong,
}

/// The normal form of an address: two spellings of one page have the same.
///
/// `http` becomes `https`; user, password and fragment go; so do the port that is the scheme's
/// default, trailing slashes of the path, the host's trailing dot and an empty query; the host is
/// lower case; a `%7E` that need not be escaped is not, and other escapes are upper case. The query
/// stays as it is: the order of its parts may mean something to the site.
///
/// ```
/// # use annotations::uri::normalize;
/// assert_eq!(normalize("HTTP://Example.org:80/a/#part")?, "https://example.org/a");
/// assert_eq!(normalize("https://example.org/a")?, "https://example.org/a");
/// # Ok::<_, annotations::uri::UriError>(())
/// ```
pub fn normalize(uri: &str) -> Result<String, UriError> {
    if uri.len() > MAX_URI_BYTES {
        return Err(UriError::TooLong);
    }
    let mut url = Url::parse(uri.trim()).map_err(UriError::NotAbsolute)?;
    if !SCHEMES.contains(&url.scheme()) {
        return Err(UriError::Scheme(url.scheme().to_owned()));
    }
    url.set_fragment(None);
    if url.query() == Some("") {
        url.set_query(None);
    }
    let normal = match url.scheme() {
        "http" | "https" => {
            let host = url.host_str().unwrap_or_default().trim_end_matches('.');
            if host.is_empty() {
                return Err(UriError::NotAbsolute(url::ParseError::EmptyHost));
            }
            let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
            let path = url.path().trim_end_matches('/');
            // a bare host keeps one slash: that is how everybody writes it
            let path = if path.is_empty() { "/" } else { path };
            let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
            unescape_unreserved(&format!("https://{host}{port}{path}{query}"))
        }
        // urn:x-pdf:…, doi:…: opaque, and the case of what follows the scheme matters
        _ => url.into(),
    };
    if normal.len() > MAX_URI_BYTES { Err(UriError::TooLong) } else { Ok(normal) }
}

/// Escapes of characters that need none become the characters, other escapes upper case (RFC 3986,
/// 6.2.2): the only changes of an escape that no server can take for another address.
fn unescape_unreserved(uri: &str) -> String {
    let mut parts = uri.split('%');
    let mut normal = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let escaped = part.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match (escaped, part.get(2..)) {
            (Some(byte), Some(rest)) if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => {
                normal.push(char::from(byte));
                normal.push_str(rest);
            }
            (Some(byte), Some(rest)) => {
                normal.push_str(&format!("%{byte:02X}"));
                normal.push_str(rest);
            }
            // a lone % is no escape: left as it stands
            _ => {
                normal.push('%');
                normal.push_str(part);
            }
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_become(spellings: &[&str], normal: &str) {
        for spelling in spellings {
            assert_eq!(normalize(spelling).as_deref(), Ok(normal), "{spelling}");
        }
        assert_eq!(normalize(normal).as_deref(), Ok(normal), "a normal form is its own");
    }

    #[test]
    fn the_spellings_of_one_page_meet() {
        all_become(
            &[
                "http://example.org/a/b",
                "https://example.org/a/b/",
                "https://example.org/a/b//",
                "HTTP://EXAMPLE.ORG:80/a/b",
                "https://example.org:443/a/b#section-2",
                "https://example.org./a/b",
                "https://example.org/a/./c/../b?",
                "  https://example.org/a/b\n",
                "https://mina:secret@example.org/a/b",
            ],
            "https://example.org/a/b",
        );
    }

    #[test]
    fn a_bare_host_keeps_one_slash() {
        all_become(&["http://example.org", "https://example.org/", "https://example.org//"], "https://example.org/");
    }

    #[test]
    fn a_query_stays_as_it_is_and_the_slash_before_it_goes() {
        all_become(&["http://example.org/a/?b=2&a=1#x"], "https://example.org/a?b=2&a=1");
    }

    #[test]
    fn escapes_that_need_not_be_are_undone() {
        all_become(&["http://example.org/%7emina/%c3%a9%2f"], "https://example.org/~mina/%C3%A9%2F");
        all_become(&["http://example.org/100%", "http://example.org/100%/"], "https://example.org/100%");
    }

    #[test]
    fn names_in_other_scripts_meet_their_ascii_form() {
        all_become(&["http://bücher.example/ü", "http://xn--bcher-kva.example/%c3%bc"], "https://xn--bcher-kva.example/%C3%BC");
    }

    #[test]
    fn different_pages_stay_different() {
        let pages = [
            "https://example.org/a",
            "https://example.org/A",
            "https://example.org/a?x",
            "https://example.org:8443/a",
            "https://www.example.org/a",
            "https://example.org/a%2Fb",
            "https://example.org/a/b",
        ];
        for (i, one) in pages.iter().enumerate() {
            for other in &pages[i + 1..] {
                assert_ne!(normalize(one), normalize(other));
            }
        }
    }

    #[test]
    fn opaque_names_only_lose_their_fragment() {
        all_become(&["urn:x-pdf:8C2f#page=3"], "urn:x-pdf:8C2f");
        all_become(&["doi:10.1000/182"], "doi:10.1000/182");
    }

    #[test]
    fn what_is_no_address_is_refused() {
        assert!(matches!(normalize(""), Err(UriError::NotAbsolute(_))));
        assert!(matches!(normalize("example.org/a"), Err(UriError::NotAbsolute(_))));
        assert!(matches!(normalize("https://"), Err(UriError::NotAbsolute(_))));
        assert!(matches!(normalize("https://./a"), Err(UriError::NotAbsolute(_))));
        assert_eq!(normalize("javascript:alert(1)"), Err(UriError::Scheme("javascript".into())));
        assert_eq!(normalize("ftp://example.org/a"), Err(UriError::Scheme("ftp".into())));
    }

    #[test]
    fn a_long_address_is_refused_also_if_only_its_normal_form_is_long() {
        let long = format!("https://example.org/{}", "a".repeat(MAX_URI_BYTES));
        assert_eq!(normalize(&long), Err(UriError::TooLong));
        let grows = format!("https://example.org/{}", "é".repeat(900));
        assert!(grows.len() < MAX_URI_BYTES);
        assert_eq!(normalize(&grows), Err(UriError::TooLong));
    }
}
