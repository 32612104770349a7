//! Walks everything that an index shows to readers, as it was at one moment: ids and versions, no documents.

use std::borrow::Cow;
use std::time::Duration;

use super::client::Method;
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::ask::parse;
use super::client::{Reply, Request};
use super::engine::Walk;
use super::{Answer, Elastic, Error, Target, answer, percent};

/// Parts of an index that are walked at the same time: a search keeps one core busy. There may be more of them.
const PARTS: usize = 3;
/// Ids in a page at most: more are hardly faster, and of a part Elasticsearch gives no more than 10,000 at once.
pub const PAGE: usize = PARTS * 10_000;
/// How long it is kept for the next page. Longer than a pause between pages of a slow walk, and than a worker's restart.
const KEEP: &str = "10m";
/// The limit of one page; it takes about 60 ms.
const PATIENCE: Duration = Duration::from_secs(30);

/// One page of a walk.
#[derive(Debug)]
pub struct Page {
    /// Id and version of each document. None: the walk is at its end.
    pub documents: Vec<(String, i64)>,
    /// Where the next page begins.
    pub after: String,
    /// The name of the point in time from now on; it can change from page to page.
    pub point_in_time: String,
}

impl Elastic {
    /// Opens a point in time on an index. What was written before is seen: the index is refreshed first, because one that is being
    /// filled may not refresh on its own.
    pub async fn open_point_in_time(&self, target: &Target) -> Result<String, Error> {
        let doing = format!("open a point in time on {target}");
        let index = percent::encode(&target.write_alias());
        self.ask(&doing, Method::Post, &format!("/{index}/_refresh"), &[("filter_path", "_shards.failed")], None).await?;
        let path = self.engine().await?.point_in_time(target);
        let body = self.ask(&doing, Method::Post, &path, &[("keep_alive", KEEP)], None).await?;
        #[derive(Deserialize)]
        struct Opened {
            #[serde(alias = "pit_id")]
            id: String,
        }
        Ok(parse::<Opened>(&doing, &body)?.id)
    }

    /// The next page of what readers see, of about `size` ids. None: the point in time is gone, and the walk starts from scratch.
    pub async fn page(&self, target: &Target, point_in_time: &str, after: Option<&str>, size: usize) -> Result<Option<Page>, Error> {
        let walk = self.engine().await?.walk();
        let places = match after {
            None => vec![Place::Beginning; self.fewest_parts(walk, target).await?],
            Some(after) => match serde_json::from_str::<Cursor<'_>>(after) {
                Ok(cursor) if !cursor.parts.is_empty() && cursor.sort == walk.sort => cursor.parts,
                // kept by another version of this program, or of the server
                _ => return Ok(None),
            },
        };
        let size = size.min(PAGE).div_ceil(places.len()).max(1);
        let part = |(n, place)| self.part_of_page(point_in_time, walk, (n, places.len()), place, size);
        let parts: Vec<_> = places.iter().enumerate().map(part).collect();
        let parts: Vec<Option<Part>> = stream::iter(parts).buffered(PARTS).try_collect().await?;
        let parts: Option<Vec<Part>> = parts.into_iter().collect();
        Ok(parts.map(|parts| Page::of(parts, walk, point_in_time)))
    }

    /// Where a place in the order is not a document's own, each part has to lie in one shard: it does, if there are as many parts as shards.
    async fn fewest_parts(&self, walk: Walk, target: &Target) -> Result<usize, Error> {
        match walk.is_total {
            true => Ok(PARTS),
            false => Ok(self.identity(target).await?.1.max(PARTS)),
        }
    }

    /// The next documents of the nth of so many parts. An index may be set to give fewer at once: then it says how many, and is asked for
    /// that.
    async fn part_of_page(
        &self,
        point_in_time: &str,
        walk: Walk,
        part: (usize, usize),
        place: &Place,
        size: usize,
    ) -> Result<Option<Part>, Error> {
        if *place == Place::End {
            return Ok(Some(Part::default()));
        }
        let doing = "read a page of ids";
        let failed = |answer| Error::Request { doing: doing.to_owned(), answer };
        let mut size = size;
        loop {
            let reply = self.ask_for_part(point_in_time, walk, part, place, size).await.map_err(failed)?;
            match reply.status {
                200 => return Ok(Some(read(doing, &reply.body)?)),
                404 if is_gone(&reply.body) => return Ok(None),
                status => match window(&reply.body) {
                    Some(window) if (1..size).contains(&window) => size = window,
                    _ => return Err(failed(answer::of_question(status, &reply.body))),
                },
            }
        }
    }

    async fn ask_for_part(
        &self,
        point_in_time: &str,
        walk: Walk,
        (n, parts): (usize, usize),
        place: &Place,
        size: usize,
    ) -> Result<Reply, Answer> {
        let mut question = json!({
            "size": size,
            "_source": false,
            "version": true,
            "track_total_hits": false,
            "pit": { "id": point_in_time, "keep_alive": KEEP },
            "sort": [walk.sort],
            "query": super::index::shown_to_readers(),
        });
        if let Place::Behind(sort) = place {
            question["search_after"] = sort.clone();
        }
        // one part is no part, and is refused
        if parts > 1 {
            question["slice"] = json!({ "id": n, "max": parts });
        }
        let query = [
            // a shard that is down would hide its documents
            ("allow_partial_search_results", "false"),
            ("filter_path", "pit_id,timed_out,hits.hits._id,hits.hits._version,hits.hits.sort"),
        ];
        let body = Some(Bytes::from(question.to_string()));
        let request = Request { method: Method::Post, path: "/_search", query: &query, content_type: "application/json", body };
        self.exchange(&request, Instant::now() + PATIENCE).await
    }

    /// Gives a point in time back. One that is gone already is as good.
    pub async fn close_point_in_time(&self, point_in_time: &str) {
        let Ok(engine) = self.engine().await else { return };
        let (path, body) = engine.close_point_in_time(point_in_time);
        _ = self.ask("close a point in time", Method::Delete, path, &[], Some(body)).await;
    }
}

/// How far a walk has come, and in which order it goes.
#[derive(Serialize, Deserialize)]
struct Cursor<'a> {
    sort: Cow<'a, str>,
    parts: Vec<Place>,
}

/// How far the walk over a part has come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Place {
    Beginning,
    /// Behind the document that sorts so.
    Behind(Value),
    #[default]
    End,
}

/// A part's share of a page.
#[derive(Debug, Default)]
struct Part {
    documents: Vec<(String, i64)>,
    place: Place,
    point_in_time: Option<String>,
}

impl Page {
    fn of(parts: Vec<Part>, walk: Walk, point_in_time: &str) -> Page {
        let point_in_time = parts.iter().find_map(|part| part.point_in_time.clone()).unwrap_or_else(|| point_in_time.to_owned());
        let places = parts.iter().map(|part| part.place.clone()).collect();
        let after = json!(Cursor { sort: walk.sort.into(), parts: places }).to_string();
        Page { documents: parts.into_iter().flat_map(|part| part.documents).collect(), after, point_in_time }
    }
}

/// It ran out, or the node that held it was restarted. The fault stands within those of the shards.
fn is_gone(body: &[u8]) -> bool {
    const MISSING: &[u8] = b"search_context_missing_exception";
    body.windows(MISSING.len()).any(|window| window == MISSING)
}

/// How many the index gives at once (`index.max_result_window`), if that was the fault.
fn window(body: &[u8]) -> Option<usize> {
    let said = String::from_utf8_lossy(body);
    let rest = said.split_once("must be less than or equal to: [")?.1;
    rest.split_once(']')?.0.parse().ok()
}

fn read(doing: &str, body: &[u8]) -> Result<Part, Error> {
    #[derive(Deserialize)]
    struct Found<'a> {
        pit_id: String,
        #[serde(default)]
        timed_out: bool,
        #[serde(borrow, default)]
        hits: Hits<'a>,
    }
    #[derive(Default, Deserialize)]
    struct Hits<'a> {
        #[serde(borrow, default)]
        hits: Vec<Hit<'a>>,
    }
    #[derive(Deserialize)]
    struct Hit<'a> {
        #[serde(rename = "_id", borrow)]
        id: Cow<'a, str>,
        #[serde(rename = "_version")]
        version: i64,
        sort: Value,
    }
    let found: Found<'_> = parse(doing, body)?;
    if found.timed_out {
        let answer = Answer::Unknown("the page is not whole: no answer in time".to_owned());
        return Err(Error::Request { doing: doing.to_owned(), answer });
    }
    let place = found.hits.hits.last().map_or(Place::End, |hit| Place::Behind(hit.sort.clone()));
    let documents = found.hits.hits.into_iter().map(|hit| (hit.id.into_owned(), hit.version)).collect();
    Ok(Part { documents, place, point_in_time: Some(found.pit_id) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_ids_versions_and_where_the_next_begins() {
        // by 9.4.3
        let body = br#"{"pit_id":"abc","timed_out":false,"hits":{"hits":[{"_id":"a\"b","_version":2,"sort":[0]},{"_id":"c","_version":12,"sort":[4294967297]}]}}"#;
        let part = read("test", body).unwrap();
        assert_eq!(part.documents, [("a\"b".to_owned(), 2), ("c".to_owned(), 12)]);
        let last = read("test", br#"{"pit_id":"abd","timed_out":false}"#).unwrap();
        assert!(last.documents.is_empty());
        let walk = Walk { sort: "_shard_doc", is_total: true };
        let page = Page::of(vec![part, last], walk, "abc");
        assert_eq!((page.documents.len(), page.point_in_time.as_str()), (2, "abc"));
        let cursor: Cursor<'_> = serde_json::from_str(&page.after).unwrap();
        assert_eq!((&*cursor.sort, cursor.parts), ("_shard_doc", vec![Place::Behind(json!([4294967297_i64])), Place::End]));
        // nothing is asked any more, and the name stays
        let end = Page::of(vec![Part::default(), Part::default()], walk, "abd");
        assert!(end.documents.is_empty() && end.point_in_time == "abd");
    }

    #[test]
    fn an_index_that_gives_fewer_at_once_says_how_many() {
        // by 9.4.3
        let body = br#"{"error":{"root_cause":[{"type":"illegal_argument_exception","reason":"Result window is too large, from + size must be less than or equal to: [100] but was [10000]. See the scroll api"}]},"status":400}"#;
        assert_eq!(window(body), Some(100));
        assert_eq!(window(br#"{"error":"something else"}"#), None);
    }

    #[test]
    fn a_page_that_is_not_whole_is_none() {
        assert!(read("test", br#"{"pit_id":"abd","timed_out":true}"#).is_err());
        assert!(read("test", br#"{"hits":{}}"#).is_err());
    }
}
