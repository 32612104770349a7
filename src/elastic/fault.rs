use std::borrow::Cow;

use serde::Deserialize;

use super::redact::{cut, hint, redact};

/// An error as Elasticsearch words it, as far as it can be read: a balancer answers in HTML. What is not said is empty.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Fault<'a> {
    #[serde(rename = "type", borrow, default)]
    pub error_type: Cow<'a, str>,
    #[serde(borrow, default)]
    pub reason: Cow<'a, str>,
    /// Some servers say only there what is wrong.
    #[serde(borrow, default)]
    pub caused_by: Option<Box<Fault<'a>>>,
}

impl<'a> Fault<'a> {
    pub fn new(error_type: Option<&'a str>, reason: Option<&'a str>) -> Fault<'a> {
        Fault { error_type: error_type.unwrap_or_default().into(), reason: reason.unwrap_or_default().into(), caused_by: None }
    }

    /// The error of a whole request: `{"error": {"type": …, "reason": …}}` or `{"error": "…"}`.
    pub fn of_request(body: &'a [u8]) -> Fault<'a> {
        #[derive(Deserialize)]
        struct Body<'a> {
            #[serde(borrow)]
            error: Error<'a>,
        }
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Error<'a> {
            Fault(#[serde(borrow)] Fault<'a>),
            Text(#[serde(borrow)] Cow<'a, str>),
        }
        match serde_json::from_slice::<Body<'a>>(body).map(|body| body.error) {
            Ok(Error::Fault(fault)) => fault,
            Ok(Error::Text(reason)) => Fault { reason, ..Fault::default() },
            Err(_) => Fault::default(),
        }
    }

    /// Its text without the values of documents, and what is behind it.
    pub fn redacted(&self, status: u16) -> String {
        let own = redact(&self.worded(status));
        match self.cause() {
            Some(cause) if !own.contains(&cause) => format!("{own}; caused by {cause}"),
            _ => own,
        }
    }

    /// The innermost cause, as far as it holds no value of a document.
    fn cause(&self) -> Option<String> {
        let mut innermost = self.caused_by.as_deref()?;
        while let Some(cause) = innermost.caused_by.as_deref() {
            innermost = cause;
        }
        match (&*innermost.error_type, hint(&innermost.reason)) {
            ("", hint) if hint.is_empty() || hint == "…" => None,
            ("", hint) => Some(hint),
            (error_type, hint) if hint.is_empty() => Some(error_type.to_owned()),
            (error_type, hint) => Some(format!("{error_type}: {hint}")),
        }
    }

    /// Its text as it is, for faults that name indices, users and actions, and never a document.
    pub fn plain(&self, status: u16) -> String {
        cut(&self.worded(status))
    }

    /// Its text without the request that it quotes, which holds the documents:
    /// `[annotation-000001][0] primary shard is not active Timeout: [5s], request: […]`.
    pub fn without_request(&self, status: u16) -> String {
        cut(self.worded(status).split(", request: ").next().unwrap_or_default())
    }

    /// Whether a request was rejected because it alone is above the node's limit: then waiting does not help, splitting
    /// does. Both numbers stand in the reason, under names that differ between versions:
    /// `…, coordinating_operation_bytes=4000208, max_coordinating_bytes=3145728]`.
    pub fn is_above_the_limit_alone(&self) -> bool {
        let number = |wanted: fn(&str) -> bool| {
            let named = self.reason.split(['[', ']', ',']).filter_map(|part| part.trim().split_once('='));
            named.filter(|(name, _)| wanted(name)).find_map(|(_, value)| value.parse::<u64>().ok())
        };
        let operation = number(|name| name.ends_with("_operation_bytes"));
        let limit = number(|name| name.starts_with("max_") && name.ends_with("_bytes"));
        matches!((operation, limit), (Some(operation), Some(limit)) if operation > limit)
    }

    fn worded(&self, status: u16) -> String {
        match (&*self.error_type, &*self.reason) {
            ("", "") => format!("status {status}"),
            ("", text) | (text, "") => format!("{text} (status {status})"),
            (error_type, reason) => format!("{error_type}: {reason}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Fault;

    #[test]
    fn an_error_is_read_in_either_form_and_its_absence_too() {
        let typed = Fault::of_request(br#"{"error":{"root_cause":[{"type":"x"}],"type":"a_exception","reason":"b \"c\""},"status":400}"#);
        assert_eq!(typed.plain(400), "a_exception: b \"c\"");
        let text = Fault::of_request(br#"{"error":"Content-Type header [text/plain] is not supported","status":406}"#);
        assert_eq!(text.plain(406), "Content-Type header [text/plain] is not supported (status 406)");
        assert_eq!(Fault::of_request(b"<html>bad gateway</html>").plain(502), "status 502");
        assert_eq!(Fault::of_request(b"").plain(413), "status 413");
    }

    #[test]
    fn what_is_behind_an_error_is_told_without_values() {
        // by OpenSearch 3.3.0
        let body = br#"{"error":{"type":"mapper_parsing_exception","reason":"failed to parse field [n] of type [long] in document with id 'a'. Preview of field's value: 'a secret word'","caused_by":{"type":"illegal_argument_exception","reason":"For input string: \"a secret word\""}}}"#;
        assert_eq!(
            Fault::of_request(body).redacted(400),
            "mapper_parsing_exception: failed to parse field [n] of type [long] in document with id …; caused by illegal_argument_exception: For input string: …"
        );
        let nested = br#"{"error":{"type":"a","reason":"failed to parse","caused_by":{"type":"b","reason":"failed","caused_by":{"type":"c","reason":"Unexpected end-of-input (12) at 5"}}}}"#;
        assert_eq!(Fault::of_request(nested).redacted(400), "a: failed to parse; caused by c: Unexpected end-of-input …");
    }

    #[test]
    fn a_request_above_the_limit_is_told_from_an_overload() {
        let rejected = |reason| Fault::new(Some("es_rejected_execution_exception"), Some(reason)).is_above_the_limit_alone();
        assert!(rejected(
            "rejected execution of coordinating operation [coordinating_and_primary_bytes=0, replica_bytes=0, all_bytes=0, coordinating_operation_bytes=4000208, max_coordinating_bytes=3145728]"
        ));
        assert!(rejected(
            "rejected execution of coordinating operation [coordinating_and_primary_bytes=0, replica_bytes=0, all_bytes=0, coordinating_operation_bytes=4000208, max_coordinating_and_primary_bytes=3145728]"
        ));
        assert!(!rejected(
            "rejected execution of coordinating operation [coordinating_and_primary_bytes=3145000, replica_bytes=0, all_bytes=3145000, coordinating_operation_bytes=208, max_coordinating_bytes=3145728]"
        ));
        assert!(!rejected("rejected execution of TimedRunnable"));
    }
}
