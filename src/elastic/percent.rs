/// A name as one segment of a path: everything that is not unreserved is escaped, so that no name can reach another path.
pub(super) fn encode(name: &str) -> String {
    let mut encoded = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// The text behind a part of a URL (a password with `%40` for `@`); `None` if it is not UTF-8.
pub(super) fn decode(encoded: &str) -> Option<String> {
    let mut decoded = Vec::with_capacity(encoded.len());
    let mut rest = encoded.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let escaped = (byte == b'%').then(|| hex_pair(after)).flatten();
        decoded.push(escaped.unwrap_or(byte));
        rest = if escaped.is_some() { &after[2..] } else { after };
    }
    String::from_utf8(decoded).ok()
}

fn hex_pair(digits: &[u8]) -> Option<u8> {
    let pair = std::str::from_utf8(digits.get(..2)?).ok()?;
    // from_str_radix takes a sign, a URL does not
    (!pair.starts_with('+')).then(|| u8::from_str_radix(pair, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::{decode, encode};

    #[test]
    fn a_name_stays_one_segment() {
        assert_eq!(encode("annotation-000001-write"), "annotation-000001-write");
        assert_eq!(encode("a/b?c#d:e%é"), "a%2Fb%3Fc%23d%3Ae%25%C3%A9");
    }

    #[test]
    fn a_password_is_read_as_it_was_meant() {
        assert_eq!(decode("p%40ss%3aw%C3%A9rd+1").as_deref(), Some("p@ss:wérd+1"));
        assert_eq!(decode("100%").as_deref(), Some("100%"));
        assert_eq!(decode("%+1%zz%").as_deref(), Some("%+1%zz%"));
        assert_eq!(decode("%FF"), None);
    }
}
