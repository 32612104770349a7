//! Does a request come from a page of ours, or from somebody else's in the same browser? And is it meant for this host? Pure.

use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, Method, Uri};

/// Browsers say here where a request comes from, and no script can change it.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Does it change nothing?
pub(super) fn is_safe(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// Does a request that may change something come from a page of this host? A browser says so; whoever says nothing is refused, because
/// an old browser may carry a session's cookie. A client with a key in its header is not asked: no browser adds that on its own.
pub(super) fn is_from_here(headers: &HeaderMap) -> bool {
    match only(headers, SEC_FETCH_SITE) {
        Only::One(site) => site == "same-origin",
        Only::None => matches!((only(headers, ORIGIN), only(headers, HOST)), (Only::One(origin), Only::One(host)) if is_of(origin, host)),
        Only::Many => false,
    }
}

/// Is this origin a page of this host? `null` is nobody's.
fn is_of(origin: &str, host: &str) -> bool {
    let named = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
    named.is_some_and(|named| named.eq_ignore_ascii_case(host))
}

/// Is the request meant for one of these names? A page elsewhere can make its own name lead to this machine (DNS rebinding); then the
/// browser still says that name.
pub(super) fn is_meant_for(uri: &Uri, headers: &HeaderMap, names: &[String]) -> bool {
    let Only::One(host) = only(headers, HOST) else { return false };
    let known = |host: &str| {
        let name = without_port(host);
        is_loopback_name(name) || names.iter().any(|known| known.eq_ignore_ascii_case(name) || known.eq_ignore_ascii_case(host))
    };
    known(host) && uri.authority().is_none_or(|authority| known(authority.as_str()))
}

fn is_loopback_name(name: &str) -> bool {
    let address = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || address.parse::<std::net::IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) && !name.ends_with(':') => name,
        _ => host,
    }
}

/// A header that may be there once. A second one is how somebody says two things to two readers.
pub(super) enum Only<'a> {
    None,
    One(&'a str),
    Many,
}

/// What a header says. One that is not text counts as many: nobody can say what it means.
pub(super) fn only(headers: &HeaderMap, name: HeaderName) -> Only<'_> {
    let mut all = headers.get_all(name).iter();
    match (all.next(), all.next()) {
        (None, _) => Only::None,
        (Some(value), None) => value.to_str().map_or(Only::Many, Only::One),
        _ => Only::Many,
    }
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, HeaderName, HeaderValue};

    use super::{is_from_here, is_meant_for};

    fn headers(all: &[(&str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&str, &str)| (HeaderName::try_from(*name).unwrap(), HeaderValue::from_str(value).unwrap());
        let mut map = HeaderMap::new();
        for (name, value) in all.iter().map(pair) {
            map.append(name, value);
        }
        map
    }

    #[test]
    fn only_pages_of_this_host_may_change_something() {
        for from_here in [
            &[("sec-fetch-site", "same-origin")][..],
            &[("host", "a:1"), ("origin", "http://a:1")],
            &[("host", "A.example"), ("origin", "https://a.example")],
            // what the browser says of the site is enough: a proxy may have changed the host
            &[("host", "inside"), ("origin", "https://a.example"), ("sec-fetch-site", "same-origin")],
        ] {
            assert!(is_from_here(&headers(from_here)), "{from_here:?}");
        }
        for elsewhere in [
            &[][..],
            &[("host", "a:1")],
            &[("sec-fetch-site", "cross-site"), ("host", "a"), ("origin", "http://a")],
            &[("sec-fetch-site", "same-site")],
            &[("sec-fetch-site", "none")],
            &[("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")],
            &[("host", "a:1"), ("origin", "http://a:2")],
            &[("host", "a"), ("origin", "null")],
            &[("host", "a"), ("origin", "a")],
            &[("host", "a"), ("origin", "http://a.evil")],
            &[("host", "a"), ("host", "evil"), ("origin", "http://evil")],
            &[("host", "a"), ("origin", "http://a"), ("origin", "http://evil")],
            &[("origin", "http://a")],
        ] {
            assert!(!is_from_here(&headers(elsewhere)), "{elsewhere:?}");
        }
    }

    #[test]
    fn a_name_that_somebody_made_lead_here_is_not_ours() {
        let meant = |uri: &str, host: &str| is_meant_for(&uri.parse().unwrap(), &headers(&[("host", host)]), &["cw.example".into()]);
        for ours in ["localhost", "localhost:8470", "127.0.0.1:8470", "127.0.0.1", "[::1]:8470", "[::1]", "cw.example", "CW.example:80"] {
            assert!(meant("/", ours), "{ours}");
        }
        for others in ["evil.example", "evil.example:8470", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1", "", "[::2]"] {
            assert!(!meant("/", others), "{others}");
        }
        assert!(!meant("http://evil.example/", "localhost"), "the address in the first line counts too");
        assert!(!is_meant_for(&"/".parse().unwrap(), &headers(&[]), &[]));
    }
}
