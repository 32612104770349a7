use std::borrow::Cow;
use std::ops::Range;

use serde::Deserialize;

use super::answer::{self, Answer};
use super::bulk::{MAX_DOCUMENT_BYTES, Write};
use super::client::Reply;
use super::fault::Fault;

/// Most writes in one request: the size of a batch, so a batch of small documents is one request.
const MAX_WRITES: usize = 2_500;

/// Most bytes in one request, about: far below Elasticsearch's 100 MiB, and a twentieth of a small node's heap. A worker holds them
/// several times over for each of its batches: as read, as documents, as the request.
const MAX_BYTES: usize = 4 << 20;

/// How often one bulk may be split after a refusal of a whole request. One bad write among 2,500 takes twelve; the limit
/// keeps a server that refuses everything from being asked 5,000 times.
const MAX_SPLITS: usize = 64;

/// Which writes go out together, and what was answered: the decisions of a bulk, without its sending.
pub(super) struct Chunks<'a> {
    writes: &'a [Write<'a>],
    answers: Vec<Option<Answer>>,
    /// Still to be sent, the next one last.
    unsent: Vec<Range<usize>>,
    splits_left: usize,
}

impl<'a> Chunks<'a> {
    pub fn of(writes: &'a [Write<'a>]) -> Chunks<'a> {
        let mut chunks = Chunks { writes, answers: vec![None; writes.len()], unsent: Vec::new(), splits_left: MAX_SPLITS };
        let (mut start, mut bytes) = (0, 0);
        for (at, write) in writes.iter().enumerate() {
            if write.body.bytes().len() > MAX_DOCUMENT_BYTES {
                let text = format!("the document has {} bytes, the limit is {MAX_DOCUMENT_BYTES}", write.body.bytes().len());
                chunks.answers[at] = Some(Answer::TooLarge(text));
                chunks.push(start..at);
                (start, bytes) = (at + 1, 0);
                continue;
            }
            if at - start == MAX_WRITES || bytes + write.weight() > MAX_BYTES {
                chunks.push(start..at);
                (start, bytes) = (at, 0);
            }
            bytes += write.weight();
        }
        chunks.push(start..writes.len());
        chunks.unsent.reverse();
        chunks
    }

    /// The next chunk to send.
    pub fn next(&mut self) -> Option<Range<usize>> {
        self.unsent.pop()
    }

    /// Takes the answer to a chunk, and decides what becomes of it and of the chunks after it.
    pub fn answered(&mut self, chunk: Range<usize>, reply: Result<Reply, Answer>) {
        let answers = match reply {
            Ok(Reply { status: 200, body }) => read(&body, &self.writes[chunk.clone()]),
            Ok(Reply { status, body }) => Err(answer::of_request(status, &body)),
            Err(answer) => Err(answer),
        };
        match answers {
            Ok(answers) => {
                let stop = answers.iter().find(|answer| concerns_all(answer)).cloned();
                for (at, answer) in chunk.zip(answers) {
                    self.answers[at] = Some(answer);
                }
                if let Some(answer) = stop {
                    self.answer_unsent(&answer);
                }
            }
            // somebody's fault in it, unknown whose
            Err(Answer::Refused(_) | Answer::TooLarge(_)) if chunk.len() > 1 && self.splits_left > 0 => {
                self.splits_left -= 1;
                let middle = chunk.start + chunk.len() / 2;
                self.push(middle..chunk.end);
                self.push(chunk.start..middle);
            }
            Err(Answer::Refused(text) | Answer::TooLarge(text)) if chunk.len() > 1 => {
                self.answers[chunk].fill(Some(Answer::Unknown(text)));
            }
            Err(answer @ (Answer::Refused(_) | Answer::TooLarge(_))) => self.answers[chunk].fill(Some(answer)),
            Err(answer) => {
                self.answers[chunk].fill(Some(answer.clone()));
                self.answer_unsent(&answer);
            }
        }
    }

    /// One answer for each write.
    pub fn into_answers(self) -> Vec<Answer> {
        let unsent = || Answer::Unknown("not sent".to_owned());
        self.answers.into_iter().map(|answer| answer.unwrap_or_else(unsent)).collect()
    }

    fn push(&mut self, chunk: Range<usize>) {
        if !chunk.is_empty() {
            self.unsent.push(chunk);
        }
    }

    /// What stops one chunk would stop the next: it is not sent, and shares the answer.
    fn answer_unsent(&mut self, answer: &Answer) {
        for chunk in self.unsent.drain(..) {
            self.answers[chunk].fill(Some(answer.clone()));
        }
    }
}

/// An item's answer that the other items would get too.
fn concerns_all(answer: &Answer) -> bool {
    matches!(answer, Answer::Denied(_) | Answer::Blocked(_) | Answer::Overloaded(_))
}

/// Reads an answer against what was sent. Items are matched by position *and* id; if one does not fit, the answer is not to
/// this request and says nothing about any write.
fn read(body: &[u8], writes: &[Write<'_>]) -> Result<Vec<Answer>, Answer> {
    #[derive(Deserialize)]
    struct Items<'a> {
        #[serde(borrow)]
        items: Vec<Item<'a>>,
    }
    #[derive(Deserialize)]
    struct Item<'a> {
        #[serde(borrow)]
        index: Outcome<'a>,
    }
    #[derive(Deserialize)]
    struct Outcome<'a> {
        #[serde(rename = "_id", borrow)]
        id: Cow<'a, str>,
        status: u16,
        #[serde(borrow)]
        error: Option<Fault<'a>>,
    }
    let unknown = |text: String| Err(Answer::Unknown(text));
    let Ok(Items { items }) = serde_json::from_slice(body) else {
        return unknown("the answer to a bulk cannot be read".to_owned());
    };
    if items.len() != writes.len() {
        return unknown(format!("a bulk of {} was answered for {}", writes.len(), items.len()));
    }
    if items.iter().zip(writes).any(|(item, write)| item.index.id != write.key) {
        return unknown("the answer to a bulk is about other keys".to_owned());
    }
    let of = |Item { index }: Item<'_>| match index.error {
        Some(fault) => answer::of_fault(index.status, &fault),
        None => answer::of_item(index.status, None, None),
    };
    Ok(items.into_iter().map(of).collect())
}

#[cfg(test)]
mod tests;
