//! What an answer of Elasticsearch means. Pure: a status, a type and a reason in, an [`Answer`] out.

use std::fmt;

use super::fault::Fault;

/// What Elasticsearch said of one item. Texts are redacted and short, so they may be stored and logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Written. Never proof: the next look is.
    Applied,
    /// Something with this version or a higher one is there, maybe our own write, landed twice.
    Conflict,
    /// This document is refused; others are not concerned.
    Refused(String),
    /// The server failed at this document: its own answer is a 5xx, and others in the same request have theirs.
    Failed(String),
    /// This document is too large, alone.
    TooLarge(String),
    /// The cluster has too much to do; this says nothing about the document.
    Overloaded(String),
    /// This index takes no writes: closed, read-only, flood stage, gone, or its alias is gone.
    Blocked(String),
    /// These credentials may not do this.
    Denied(String),
    /// A shard of this index is down.
    Unavailable(String),
    /// There was no connection, or it broke: the cluster is concerned, not one index. Whether the write landed is unknown.
    Unreachable(String),
    /// Whether it was written is not known: no answer in time, a server that failed at the whole request, an answer that does not fit.
    Unknown(String),
}

impl Answer {
    /// All names, in the order of the variants.
    pub const NAMES: [&str; 11] = [
        "applied",
        "conflict",
        "refused",
        "failed",
        "too_large",
        "overloaded",
        "blocked",
        "denied",
        "unavailable",
        "unreachable",
        "unknown",
    ];

    /// As metrics show it.
    pub fn name(&self) -> &'static str {
        Answer::NAMES[match self {
            Answer::Applied => 0,
            Answer::Conflict => 1,
            Answer::Refused(_) => 2,
            Answer::Failed(_) => 3,
            Answer::TooLarge(_) => 4,
            Answer::Overloaded(_) => 5,
            Answer::Blocked(_) => 6,
            Answer::Denied(_) => 7,
            Answer::Unavailable(_) => 8,
            Answer::Unreachable(_) => 9,
            Answer::Unknown(_) => 10,
        }]
    }
}

/// What an item's status and error mean.
pub fn of_item(status: u16, error_type: Option<&str>, reason: Option<&str>) -> Answer {
    of_fault(status, &Fault::new(error_type, reason))
}

/// The same of an error as it was read.
pub(super) fn of_fault(status: u16, fault: &Fault<'_>) -> Answer {
    if let Some(answer) = of_known_fault(status, fault) {
        return answer;
    }
    let text = fault.redacted(status);
    match (status, &*fault.error_type) {
        (200 | 201, "") => Answer::Applied,
        (409, "version_conflict_engine_exception") => Answer::Conflict,
        (409, _) => Answer::Unknown(text),
        (413, _) => Answer::TooLarge(text),
        (503, _) => Answer::Unavailable(text),
        (400..=499, _) => Answer::Refused(text),
        (500..=599, _) => Answer::Failed(text),
        _ => Answer::Unknown(text),
    }
}

/// What a request's status means when it is not a success. It holds for everything in the request: `Refused` says that
/// something in it was refused, and not what; `TooLarge` that all of it together was.
pub fn of_request(status: u16, body: &[u8]) -> Answer {
    let fault = Fault::of_request(body);
    of_whole(status, &fault, fault.redacted(status))
}

/// The same for a question without documents in it: its text is cut, not redacted.
pub(super) fn of_question(status: u16, body: &[u8]) -> Answer {
    let fault = Fault::of_request(body);
    of_whole(status, &fault, fault.plain(status))
}

fn of_whole(status: u16, fault: &Fault<'_>, text: String) -> Answer {
    if status == 429 && fault.is_above_the_limit_alone() {
        return Answer::TooLarge(text);
    }
    if let Some(answer) = of_known_fault(status, fault) {
        return answer;
    }
    match status {
        413 => Answer::TooLarge(text),
        // without a type it is somebody else's 400, a balancer's, and says nothing about a document
        400 if !fault.error_type.is_empty() => Answer::Refused(text),
        _ => Answer::Unknown(text),
    }
}

/// Faults that mean the same for an item and for a request. The type decides before the status does: a closed index
/// answers 400, flood stage 429, a write block 403, and none of them is the document's fault or the credentials'.
fn of_known_fault(status: u16, fault: &Fault<'_>) -> Option<Answer> {
    const NO_WRITE_INDEX: &str = "no write index is defined for alias";
    // a setting of the index names it, whatever the document is
    const NO_PIPELINE: &str = "pipeline with id [";
    Some(match (&*fault.error_type, status) {
        // no master, or a state not yet recovered: the cluster starts, nobody blocked this index
        ("cluster_block_exception", 503) => Answer::Unavailable(fault.plain(status)),
        ("cluster_block_exception" | "index_closed_exception" | "index_not_found_exception", _) => Answer::Blocked(fault.plain(status)),
        ("illegal_argument_exception", _) if fault.reason.starts_with(NO_WRITE_INDEX) || fault.reason.starts_with(NO_PIPELINE) => {
            Answer::Blocked(fault.plain(status))
        }
        ("unavailable_shards_exception", _) => Answer::Unavailable(fault.without_request(status)),
        ("es_rejected_execution_exception" | "rejected_execution_exception" | "circuit_breaking_exception", _) => {
            Answer::Overloaded(fault.redacted(status))
        }
        ("security_exception", _) => Answer::Denied(fault.plain(status)),
        (_, 401 | 403) => Answer::Denied(fault.redacted(status)),
        (_, 429) => Answer::Overloaded(fault.redacted(status)),
        _ => return None,
    })
}

impl Answer {
    /// The reason, where the answer has one.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Answer::Applied | Answer::Conflict => None,
            Answer::Refused(text)
            | Answer::Failed(text)
            | Answer::TooLarge(text)
            | Answer::Overloaded(text)
            | Answer::Blocked(text)
            | Answer::Denied(text)
            | Answer::Unavailable(text)
            | Answer::Unreachable(text)
            | Answer::Unknown(text) => Some(text),
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self {
            Answer::Applied => "applied",
            Answer::Conflict => "conflict",
            Answer::Refused(_) => "refused",
            Answer::Failed(_) => "failed",
            Answer::TooLarge(_) => "too large",
            Answer::Overloaded(_) => "overloaded",
            Answer::Blocked(_) => "blocked",
            Answer::Denied(_) => "denied",
            Answer::Unavailable(_) => "unavailable",
            Answer::Unreachable(_) => "unreachable",
            Answer::Unknown(_) => "unknown",
        };
        match self.reason() {
            Some(reason) => write!(f, "{kind}: {reason}"),
            None => f.write_str(kind),
        }
    }
}

#[cfg(test)]
#[path = "answer/captured/tests.rs"]
mod captured;
#[cfg(test)]
mod tests;
