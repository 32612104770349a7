//! Rebuilds: where each is, and what can be done.

use askama::Template;
use axum::response::Response;
use chrono::Utc;

use super::Console;
use super::act::{Button, button};
use super::asked::Asked;
use super::first::stage;
use super::frame::{Frame, Tab, page};
use super::state::State;
use super::text::{self, Text, text};
use super::words::{Moment, count, left, moment};
use crate::rebuild::Stage;
use crate::serve::actions::Rebuilding;
use crate::serve::{Problem, Who, actions};

/// The story, in its order.
const STORY: [(Stage, &str); 6] = [
    (Stage::Create, "the new index is made"),
    (Stage::Fill, "every key is scheduled"),
    (Stage::Drain, "the jobs are worked on"),
    (Stage::Verify, "an audit must find nothing"),
    (Stage::Swap, "readers move to it"),
    (Stage::Keep, "the old one is kept in step"),
];

#[derive(Template)]
#[template(path = "rebuilds.html")]
struct Rebuilds {
    frame: Frame,
    lines: Vec<Line>,
}

struct Line {
    name: String,
    href: String,
    state: State,
    word: String,
    /// None: no rebuild is under way.
    way: Option<Way>,
    failed: Option<Text>,
    buttons: Vec<Button>,
}

struct Way {
    from: String,
    to: String,
    by: String,
    at: Moment,
    steps: Vec<Step>,
    percent: Option<u8>,
    detail: String,
}

struct Step {
    name: &'static str,
    means: &'static str,
    class: &'static str,
    here: bool,
}

pub(super) async fn rebuilds(console: Console, who: Who, asked: Asked) -> Result<Response, Problem> {
    let mut lines = Vec::new();
    for name in console.serve.chosen(&who, None)? {
        lines.push(Line::of(&console, &who, actions::rebuild(&console.serve, &who, &name).await?));
    }
    // those that are under way come first
    lines.sort_by_key(|line| line.way.is_none());
    let mut frame = Frame::of(&console.serve, &who, Tab::Rebuilds, "Rebuilds").command("catchword status").renewed_by("/rebuilds");
    frame.notice = super::act::notice(&asked);
    page(&Rebuilds { frame, lines })
}

impl Line {
    fn of(console: &Console, who: &Who, rebuilding: Rebuilding) -> Line {
        let name = rebuilding.collection;
        let now = Utc::now();
        let found = rebuilding.rebuild.as_ref();
        let mut acts: Vec<(&str, &str)> = Vec::new();
        let (state, word) = match found.map(|found| &found.rebuild) {
            None => {
                acts.push(("rebuild", "Rebuild…"));
                (State::InStep, "one index".to_owned())
            }
            Some(rebuild) if rebuild.stage == Stage::Keep && rebuild.kept_index() == rebuild.new_index => {
                (State::InStep, "gone back: readers see the old index".into())
            }
            Some(rebuild) if rebuild.stage == Stage::Keep => {
                acts.push(("back", "Go back to the old index…"));
                (State::InStep, "swapped in".into())
            }
            Some(rebuild) => {
                if rebuild.is_before_the_swap() {
                    if !rebuild.driven {
                        acts.push(("rebuild", "Go on…"));
                    }
                    acts.push(("abort", "Abort…"));
                }
                if rebuild.driven { (State::Behind, rebuild.stage.to_string()) } else { (State::Paused, "nobody works on it".into()) }
            }
        };
        let named = [("collection", name.as_str())];
        let buttons = acts.into_iter().filter_map(|(act, label)| button(&console.serve, who, act, label, &named)).collect();
        let way = found.map(|found| {
            let rebuild = &found.rebuild;
            let through = match rebuild.stage {
                Stage::Drain => format!("{} of {} through", count(found.through as i64), count(rebuild.scheduled)),
                _ => stage(found, now),
            };
            let waits = rebuilding.progress.as_ref().and_then(|progress| progress.waits_for.as_ref());
            let waits = waits.map_or(String::new(), |waits| format!(" · waits for {}", text::line(waits)));
            let left = found.seconds_left.map_or(String::new(), |seconds| format!(" · {}", left(seconds)));
            Way {
                from: rebuild.old_index.clone(),
                to: rebuild.new_index.clone(),
                by: text::line(super::journal::person(&rebuild.started_by)),
                at: moment(rebuild.started_at, now),
                steps: steps(rebuild.stage),
                percent: (rebuild.stage == Stage::Drain).then(|| (found.ratio() * 100.0).clamp(0.0, 100.0) as u8),
                detail: format!("{through}{left}{waits}"),
            }
        });
        Line {
            href: format!("/collections/{}", text::segment(&name)),
            state,
            word,
            way,
            failed: rebuilding.failed.as_deref().map(text),
            buttons,
            name,
        }
    }
}

fn steps(stage: Stage) -> Vec<Step> {
    let at = STORY.iter().position(|(step, _)| *step == stage);
    STORY
        .into_iter()
        .enumerate()
        .map(|(n, (step, means))| Step {
            name: step.name(),
            means,
            class: match at {
                Some(at) if n < at => "past",
                Some(at) if n == at => "here",
                _ => "",
            },
            here: at == Some(n),
        })
        .collect()
}
