//! The text of a key: made, taken apart, compared.

use rand::TryRngCore;
use rand::rngs::OsRng;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::Error;

/// What every key begins with, so that people and scanners of secrets know one when they see it.
pub(crate) const PREFIX: &str = "cwk_";
/// Random bytes of the id, which is no secret: enough that no two are the same.
const ID: usize = 6;
/// Random bytes of the secret: nobody finds one by trying.
const SECRET: usize = 32;

/// A new key: its id, and the whole text.
pub(super) fn new_text() -> Result<(String, String), Error> {
    let id = hex(&random::<ID>()?);
    let text = format!("{PREFIX}{id}_{}", hex(&random::<SECRET>()?));
    Ok((id, text))
}

/// The id of what looks like a key. None: it is none, and nobody has to be asked.
pub(crate) fn id_of(text: &str) -> Option<&str> {
    let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
    let is_hex = |part: &str, bytes: usize| part.len() == 2 * bytes && part.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    (is_hex(id, ID) && is_hex(secret, SECRET)).then_some(id)
}

pub(super) fn digest(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

/// Is this the digest of that key? It takes as long whatever the answer is.
pub(crate) fn is_digest_of(kept: &[u8], text: &str) -> bool {
    bool::from(digest(text).ct_eq(kept))
}

/// From the system's own generator, which is the one that may make secrets.
fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    OsRng.try_fill_bytes(&mut bytes).map_err(|error| Error::refused(format!("the system has no random bytes: {error}")))?;
    Ok(bytes)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::{digest, id_of, is_digest_of, new_text};

    #[test]
    fn a_key_is_known_by_its_digest_alone() {
        let (id, text) = new_text().unwrap();
        assert_eq!(id_of(&text), Some(id.as_str()));
        assert!(is_digest_of(&digest(&text), &text));
        let (_, other) = new_text().unwrap();
        assert!(!is_digest_of(&digest(&text), &other));
        assert!(!is_digest_of(&[], &text));
    }

    #[test]
    fn what_is_no_key_is_told_without_asking_anybody() {
        let secret = "0".repeat(64);
        for none in [
            "",
            "cwk_",
            "x",
            &format!("cwk_00000000000_{secret}"),
            &format!("cwk_00000000000G_{secret}"),
            "cwk_000000000000_",
            &format!("cwk_000000000000_{secret}0"),
        ] {
            assert_eq!(id_of(none), None, "{none}");
        }
    }
}
