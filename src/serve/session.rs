//! Sessions of people who signed in with a key. They are in this process' memory, and end with it, with their key, after an hour without a
//! request, and after eight hours in any case.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::header::COOKIE;
use axum::http::{HeaderMap, HeaderValue};
use rand::TryRngCore;
use rand::rngs::OsRng;
use sha2::{Digest, Sha256};

/// The name of the cookie.
const NAME: &str = "catchword_session";
/// A session without a request ends.
const IDLE: Duration = Duration::from_secs(3600);
/// Any session ends.
pub(super) const LONGEST: Duration = Duration::from_secs(8 * 3600);
/// Sessions at a time. Above it the one that was idle for longest ends.
const MOST: usize = 1_000;

/// The sessions of this process, by the SHA-256 of their ids: what is in memory opens nothing.
#[derive(Default)]
pub(super) struct Sessions(Mutex<HashMap<[u8; 32], Session>>);

struct Session {
    /// The id of its key, which is looked up at each request.
    key: String,
    began: Instant,
    used: Instant,
}

impl Sessions {
    /// Begins one, and returns what goes into the cookie. None: the system has no random bytes.
    pub fn begin(&self, key: &str, now: Instant) -> Option<String> {
        let mut bytes = [0; 32];
        OsRng.try_fill_bytes(&mut bytes).ok()?;
        let id: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, session| session.is_alive(now));
        if all.len() >= MOST
            && let Some(idlest) = all.iter().min_by_key(|(_, session)| session.used).map(|(id, _)| *id)
        {
            all.remove(&idlest);
        }
        all.insert(hashed(&id), Session { key: key.to_owned(), began: now, used: now });
        Some(id)
    }

    /// The id of the key that this session was begun with.
    pub fn key_of(&self, id: &str, now: Instant) -> Option<String> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let session = all.get_mut(&hashed(id))?;
        if !session.is_alive(now) {
            all.remove(&hashed(id));
            return None;
        }
        session.used = now;
        Some(session.key.clone())
    }

    pub fn end(&self, id: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&hashed(id));
    }
}

impl Session {
    fn is_alive(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.used) < IDLE && now.saturating_duration_since(self.began) < LONGEST
    }
}

fn hashed(id: &str) -> [u8; 32] {
    Sha256::digest(id.as_bytes()).into()
}

/// The session that a request says it is of. Two are none: somebody put one beside the other.
pub(super) fn named(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok()).flat_map(|line| line.split(';'));
    let mut ours = cookies.filter_map(|cookie| cookie.trim().strip_prefix(NAME)?.strip_prefix('='));
    match (ours.next(), ours.next()) {
        (Some(id), None) if !id.is_empty() => Some(id),
        _ => None,
    }
}

/// The cookie that begins a session, or with an empty id ends it. `secure`: the browser came by TLS, and must not send it otherwise.
pub(super) fn cookie(id: &str, base: &str, secure: bool) -> Option<HeaderValue> {
    let path = if base.is_empty() { "/" } else { base };
    let age = if id.is_empty() { 0 } else { LONGEST.as_secs() };
    let secure = if secure { "; Secure" } else { "" };
    HeaderValue::try_from(format!("{NAME}={id}; Path={path}; Max-Age={age}; HttpOnly; SameSite=Strict{secure}")).ok()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use axum::http::{HeaderMap, HeaderValue, header};

    use super::{IDLE, LONGEST, MOST, Sessions, named};

    #[test]
    fn a_session_ends_when_it_is_idle_old_or_signed_out() {
        let (sessions, start) = (Sessions::default(), Instant::now());
        let [idle, old, out] = [(); 3].map(|()| sessions.begin("k", start).unwrap());
        assert_eq!(sessions.key_of(&idle, start).as_deref(), Some("k"));
        assert_eq!(sessions.key_of(&idle, start + IDLE), None);
        let mut now = start;
        while now < start + LONGEST - Duration::from_secs(1800) {
            now += Duration::from_secs(1800);
            assert!((sessions.key_of(&old, now).is_some()) == (now < start + LONGEST));
        }
        assert_eq!(sessions.key_of(&old, start + LONGEST), None);
        assert!(sessions.key_of(&out, start).is_some());
        sessions.end(&out);
        assert_eq!(sessions.key_of(&out, start), None);
        assert_eq!(sessions.key_of("", start), None);
    }

    #[test]
    fn sessions_without_number_end_the_idlest() {
        let (sessions, start) = (Sessions::default(), Instant::now());
        let first = sessions.begin("k", start).unwrap();
        let second = sessions.begin("k", start).unwrap();
        assert!(sessions.key_of(&second, start + Duration::from_secs(1)).is_some());
        for _ in 2..=MOST {
            sessions.begin("k", start + Duration::from_secs(2)).unwrap();
        }
        let now = start + Duration::from_secs(3);
        assert_eq!((sessions.key_of(&first, now), sessions.key_of(&second, now).as_deref()), (None, Some("k")));
    }

    #[test]
    fn one_cookie_is_a_session_and_two_are_none() {
        let of = |lines: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(header::COOKIE, HeaderValue::from_static(line));
            }
            named(&headers).map(str::to_owned)
        };
        assert_eq!(of(&["a=b; catchword_session=x; c=d"]).as_deref(), Some("x"));
        assert_eq!(of(&["a=b", "catchword_session=x"]).as_deref(), Some("x"));
        assert_eq!(of(&["catchword_session=x; catchword_session=y"]), None);
        assert_eq!(of(&["catchword_session=x", "catchword_session=y"]), None);
        assert_eq!(of(&["catchword_session="]), None);
        assert_eq!(of(&["xcatchword_session=x"]), None);
        assert_eq!(of(&[]), None);
    }
}
