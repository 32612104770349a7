//! What can be done: each is asked for on a page of its own that says what will happen, is one call of `serve::actions`, and ends on a
//! page that says what was done.

mod ask;
mod did;

use axum::extract::Path;
use axum::http::header::LOCATION;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

pub(super) use ask::ask;
pub(super) use did::notice;

use super::Console;
use super::asked::{Asked, Form};
use super::text;
use super::{dead, reindexes};
use crate::serve::actions::{self, Chosen};
use crate::serve::{Problem, Role, Serve, Who};
use did::Did;

/// How long the old index of a rebuild is kept, as the command does it.
const KEEP: std::time::Duration = std::time::Duration::from_secs(24 * 3_600);

/// A way to the page that asks.
#[derive(Clone)]
pub(super) struct Button {
    pub label: String,
    pub href: String,
    pub class: &'static str,
}

/// What can be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Pause,
    Resume,
    Replay,
    Discard,
    LookAgain,
    Reindex,
    PauseReindex,
    ResumeReindex,
    RateReindex,
    CancelReindex,
    Audit,
    Repair,
    StopAudit,
    Rebuild,
    Back,
    Abort,
}

impl Act {
    const ALL: [Act; 16] = [
        Act::Pause,
        Act::Resume,
        Act::Replay,
        Act::Discard,
        Act::LookAgain,
        Act::Reindex,
        Act::PauseReindex,
        Act::ResumeReindex,
        Act::RateReindex,
        Act::CancelReindex,
        Act::Audit,
        Act::Repair,
        Act::StopAudit,
        Act::Rebuild,
        Act::Back,
        Act::Abort,
    ];

    /// Its word in an address.
    fn word(self) -> &'static str {
        match self {
            Act::Pause => "pause",
            Act::Resume => "resume",
            Act::Replay => "replay",
            Act::Discard => "discard",
            Act::LookAgain => "look-again",
            Act::Reindex => "reindex",
            Act::PauseReindex => "pause-reindex",
            Act::ResumeReindex => "resume-reindex",
            Act::RateReindex => "rate-reindex",
            Act::CancelReindex => "cancel-reindex",
            Act::Audit => "audit",
            Act::Repair => "repair",
            Act::StopAudit => "stop-audit",
            Act::Rebuild => "rebuild",
            Act::Back => "back",
            Act::Abort => "abort",
        }
    }

    fn named(word: &str) -> Option<Act> {
        Act::ALL.into_iter().find(|act| act.word() == word)
    }

    /// Who may: the same as `serve::actions` asks, so that nobody sees a button that would be refused.
    fn needs(self) -> Role {
        if matches!(self, Act::Rebuild | Act::Back | Act::Abort) { Role::Admin } else { Role::Operator }
    }

    /// Does it throw something away?
    fn is_harm(self) -> bool {
        matches!(self, Act::Discard | Act::CancelReindex | Act::Abort)
    }
}

fn named(word: &str) -> Result<Act, Problem> {
    Act::named(word).ok_or_else(|| Problem::not_found("there is nothing at this address", "begin at the first page"))
}

/// A button, if whoever looks may press it.
pub(super) fn button(serve: &Serve, who: &Who, word: &str, label: &str, query: &[(&str, &str)]) -> Option<Button> {
    let act = Act::named(word).filter(|act| serve.allow(who, act.needs()).is_ok())?;
    let class = if act.is_harm() { "harm" } else { "" };
    Some(Button { label: label.to_owned(), href: text::link(&format!("/do/{word}"), query), class })
}

/// Does it, and sends to the page that says what was done.
pub(super) async fn act(console: Console, who: Who, Path(word): Path<String>, Form(form): Form) -> Result<Response, Problem> {
    let act = named(&word)?;
    // the role first: whoever may not do it learns nothing of what is there
    console.serve.allow(&who, act.needs())?;
    let did = done(&console, &who, act, &form).await?;
    let place = format!("{}{}", console.serve.options.base, did.place());
    let place = HeaderValue::try_from(place).map_err(|_| Problem::internal("the next page has no address", "begin at the first page"))?;
    Ok((StatusCode::SEE_OTHER, [(LOCATION, place)]).into_response())
}

async fn done(console: &Console, who: &Who, act: Act, form: &Asked) -> Result<Did, Problem> {
    let serve = &console.serve;
    let id = || form.number::<i64>("id")?.ok_or_else(|| Problem::bad("id", "id is missing", "begin at the first page"));
    if matches!(act, Act::PauseReindex | Act::ResumeReindex | Act::RateReindex | Act::CancelReindex) {
        let id = id()?;
        let collection = &reindexes::find(console, who, id).await?.collection;
        let changed = match act {
            Act::PauseReindex => actions::reindex_pause(serve, who, collection, id).await?,
            Act::ResumeReindex => actions::reindex_resume(serve, who, collection, id).await?,
            Act::RateReindex => actions::reindex_rate(serve, who, collection, id, form.number("rate")?).await?,
            _ => actions::reindex_cancel(serve, who, collection, id).await?,
        };
        return Ok(Did::changed(act, changed.changed).at(format!("/reindexes/{id}")));
    }
    let collection = form.must("collection")?;
    let page = format!("/collections/{}", text::segment(collection));
    let of = |path: &str| text::link(path, &[("collection", collection)]);
    match act {
        Act::Pause => {
            let changed = actions::pause(serve, who, collection, form.get("reason").unwrap_or_default()).await?;
            Ok(Did::changed(act, changed.changed).at(page))
        }
        Act::Resume => Ok(Did::changed(act, actions::resume(serve, who, collection).await?.changed).at(page)),
        Act::Replay => {
            let count = actions::replay(serve, who, collection, &chosen(console, who, form).await?).await?.count;
            Ok(Did::counted(act, count).at(of("/dead")))
        }
        Act::Discard => {
            let typed = form.exactly("typed").unwrap_or_default().trim();
            if typed != collection {
                let remedy = format!("type {collection}, so that it is sure which one is meant");
                return Err(Problem::bad("typed", "the collection's name was not typed; nothing was discarded", remedy));
            }
            let count = actions::discard(serve, who, collection, &chosen(console, who, form).await?).await?.count;
            Ok(Did::counted(act, count).at(of("/dead")))
        }
        Act::LookAgain => {
            let key = form.exactly("key").unwrap_or_default();
            let scheduled = actions::look_again(serve, who, collection, key).await?.scheduled;
            Ok(Did::counted(act, scheduled).at(text::link("/key", &[("collection", collection), ("key", key)])))
        }
        Act::Reindex => {
            let started = reindexes::start(console, who, form).await?;
            Ok(Did::changed(act, true).at(format!("/reindexes/{started}")))
        }
        Act::Audit | Act::Repair => {
            let (repair, content) = (act == Act::Repair || form.is_on("repair"), form.is_on("content"));
            actions::audit_start(serve, who, collection, repair, content).await?;
            Ok(Did::changed(act, true).at(of("/audits")))
        }
        Act::StopAudit => {
            let changed = actions::audit_stop(serve, who, collection, id()?).await?.changed;
            Ok(Did::changed(act, changed).at(of("/audits")))
        }
        Act::Rebuild => {
            actions::rebuild_start(serve, who, collection, KEEP).await?;
            Ok(Did::changed(act, true).at("/rebuilds".into()))
        }
        Act::Back => {
            actions::rebuild_back(serve, who, collection).await?;
            Ok(Did::changed(act, true).at("/rebuilds".into()))
        }
        Act::Abort => {
            actions::rebuild_abort(serve, who, collection).await?;
            Ok(Did::changed(act, true).at("/rebuilds".into()))
        }
        Act::PauseReindex | Act::ResumeReindex | Act::RateReindex | Act::CancelReindex => {
            Err(Problem::not_found("there is none", "begin again"))
        }
    }
}

/// Which dead letters: one, those of the same error as an example, or all of a collection.
async fn chosen(console: &Console, who: &Who, asked: &Asked) -> Result<Chosen, Problem> {
    if let Some(id) = asked.number::<i64>("id")? {
        return Ok(Chosen { ids: Some(vec![id]), ..Chosen::default() });
    }
    match asked.number::<i64>("example")? {
        Some(example) => Ok(dead::chosen_like(&dead::find(console, who, example).await?)),
        None => Ok(Chosen { all: true, ..Chosen::default() }),
    }
}

#[cfg(test)]
mod tests {
    use super::Act;

    #[test]
    fn every_act_has_a_word_of_its_own() {
        for act in Act::ALL {
            assert_eq!(Act::named(act.word()), Some(act));
        }
        assert_eq!(Act::named("detach"), None);
        assert_eq!(Act::named("migrate"), None);
    }
}
