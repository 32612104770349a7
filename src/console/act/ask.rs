//! The page that asks before something is done, and says what will happen.

use askama::Template;
use axum::extract::Path;
use axum::response::Response;

use super::{Act, Chosen, chosen, named};
use crate::console::Console;
use crate::console::asked::Asked;
use crate::console::frame::{Frame, Tab, page};
use crate::console::text::{self, Text, cut, text};
use crate::console::words::{count, of, span};
use crate::console::{dead, reindexes};
use crate::printable::shell_word;
use crate::serve::actions::{self, MOST_LETTERS};
use crate::serve::{Problem, Who};

#[derive(Template)]
#[template(path = "ask.html")]
struct Ask {
    frame: Frame,
    title: String,
    about: Option<Text>,
    /// A number that matters most.
    big: Option<String>,
    says: Vec<String>,
    fields: Vec<Field>,
    hidden: Vec<(&'static str, String)>,
    word: &'static str,
    go: String,
    harm: bool,
    back: String,
}

/// Something to be filled in.
struct Field {
    kind: &'static str,
    name: &'static str,
    label: String,
    hint: String,
    value: String,
    required: bool,
}

impl Field {
    fn text(name: &'static str, label: impl Into<String>, hint: &str) -> Field {
        Field { kind: "text", name, label: label.into(), hint: hint.into(), value: String::new(), required: true }
    }

    fn tick(name: &'static str, label: &str, hint: &str) -> Field {
        Field { kind: "checkbox", required: false, ..Field::text(name, label, hint) }
    }
}

/// What a page says, before it is put into a frame.
struct Words {
    title: String,
    about: Option<Text>,
    big: Option<String>,
    says: Vec<String>,
    fields: Vec<Field>,
    hidden: Vec<(&'static str, String)>,
    go: String,
    back: String,
    command: String,
}

pub(in super::super) async fn ask(console: Console, who: Who, Path(word): Path<String>, asked: Asked) -> Result<Response, Problem> {
    let act = named(&word)?;
    console.serve.allow(&who, act.needs())?;
    let words = match act {
        Act::PauseReindex | Act::ResumeReindex | Act::RateReindex | Act::CancelReindex => {
            about_reindex(&console, &who, act, &asked).await?
        }
        Act::Reindex => dry_run(&console, &who, &asked).await?,
        Act::Replay | Act::Discard => about_letters(&console, &who, act, &asked).await?,
        _ => about_collection(&console, &who, act, &asked).await?,
    };
    let mut frame = Frame::of(&console.serve, &who, Tab::None, words.title.clone()).command(words.command);
    frame.chosen = asked.get("collection").map(str::to_owned);
    let Words { title, about, big, says, fields, hidden, go, back, .. } = words;
    page(&Ask { frame, title, about, big, says, fields, hidden, word: act.word(), go, harm: act.is_harm(), back })
}

async fn about_collection(console: &Console, who: &Who, act: Act, asked: &Asked) -> Result<Words, Problem> {
    let name = console.serve.collection(who, asked.must("collection")?)?.name.clone();
    let (shell, of_name) = (shell_word(&name), vec![("collection", name.clone())]);
    let words = |title: String, go: &str, says: &[&str], command: String| Words {
        title,
        about: None,
        big: None,
        says: says.iter().map(|said| (*said).to_owned()).collect(),
        fields: Vec::new(),
        hidden: of_name.clone(),
        go: go.into(),
        back: format!("/collections/{}", text::segment(&name)),
        command,
    };
    Ok(match act {
        Act::Pause => Words {
            fields: vec![Field::text("reason", "Reason", "for whoever finds it paused, such as: the mapping is being changed")],
            ..words(
                format!("Pause {name}"),
                "Pause",
                &[
                    "Nothing of it is worked on, and direct writes are left to the queue.",
                    "Writes to Postgres go on and schedule jobs. Search shows older and older documents.",
                    "No job expires because of it. After four hours check reminds you.",
                ],
                format!("catchword pause {shell} --reason …"),
            )
        },
        Act::Resume => words(
            format!("Resume {name}"),
            "Resume",
            &["Workers go on with its jobs at once, the live writes first."],
            format!("catchword resume {shell}"),
        ),
        Act::LookAgain => {
            let key = asked.exactly("key").unwrap_or_default().to_owned();
            let back = text::link("/key", &[("collection", &name), ("key", &key)]);
            let hidden = vec![("collection", name.clone()), ("key", key.clone())];
            let command = format!("catchword reindex {shell} --ids {} --hidden", cut(&shell_word(&key), 100).short);
            let says =
                ["A job is scheduled for this key, due at once.", "A worker looks at both sides, and writes the document if they differ."];
            Words { about: Some(cut(&key, 120)), hidden, back, ..words("Look again now".into(), "Look again", &says, command) }
        }
        Act::Audit => Words {
            fields: vec![
                Field::tick("repair", "Repair what differs", "each difference becomes a job, but for keys that have a dead letter"),
                Field::tick("content", "Compare the documents too", "not only their versions; this takes longer"),
            ],
            ..words(
                format!("Audit {name}"),
                "Begin the audit",
                &[
                    "A worker compares every key of the table with the index, and every document with the table.",
                    "It takes ten seconds to a minute per million keys, while traffic flows.",
                    "Without repair nothing is changed.",
                ],
                format!("catchword audit {shell}"),
            )
        },
        Act::Repair => Words {
            fields: vec![Field::tick("content", "Compare the documents too", "needed where documents differ under equal versions")],
            ..words(
                format!("Repair {name}"),
                "Audit and repair",
                &[
                    "A worker compares everything again, and schedules a job for each key that differs.",
                    "Keys that have a dead letter are left: fix their rows, then replay the letters.",
                ],
                format!("catchword audit {shell} --repair"),
            )
        },
        Act::StopAudit => {
            let id = asked.number::<i64>("id")?.unwrap_or_default();
            let hidden = vec![("collection", name.clone()), ("id", id.to_string())];
            let back = text::link("/audits", &[("collection", &name)]);
            let says = ["It stops after the piece that it works on. What it has scheduled for repair stays scheduled."];
            Words { hidden, back, ..words(format!("Stop audit {id} of {name}"), "Stop it", &says, "catchword journal".into()) }
        }
        Act::Rebuild => {
            let mut words = words(
                format!("Rebuild the index of {name}"),
                "Begin the rebuild",
                &[
                    "A new index is made from the mapping file of this server's configuration, and filled through the queue.",
                    "Both indices are kept in step. Nobody waits, and no reader misses anything.",
                    "When an audit of the new one finds nothing, the readers' alias moves to it in one step.",
                    "The old index is kept in step for a day: until then you can go back. Elasticsearch needs room for both.",
                ],
                format!("catchword rebuild {shell} --dry-run"),
            );
            words.back = "/rebuilds".into();
            match actions::rebuild(&console.serve, who, &name).await?.rebuild {
                // it has begun, and the same button goes on with it
                Some(_) => words.says.insert(0, "It was begun already, and goes on where it was.".into()),
                None => {
                    let plan = actions::rebuild_plan(&console.serve, who, &name).await?;
                    let keys = plan.keys.map_or("more keys than could be counted".into(), |keys| of(keys, "key"));
                    words.about = Some(text(&format!("{} to {}, {keys}", plan.old_index, plan.new_index)));
                }
            }
            words
        }
        Act::Back => Words {
            back: "/rebuilds".into(),
            ..words(
                format!("Let readers of {name} see the other index again"),
                "Go back",
                &[
                    "The readers' alias moves in one step to the index that is kept, which is as fresh as the one they see now.",
                    "Both stay in step, so you can change your mind.",
                ],
                format!("catchword rebuild {shell} --back"),
            )
        },
        _ => Words {
            back: "/rebuilds".into(),
            ..words(
                format!("Abort the rebuild of {name}"),
                "Abort the rebuild",
                &["The new index is dropped. Readers see the old one, as before: they notice nothing."],
                format!("catchword rebuild {shell} --abort"),
            )
        },
    })
}

/// Says how many letters it is, and which.
async fn about_letters(console: &Console, who: &Who, act: Act, asked: &Asked) -> Result<Words, Problem> {
    let name = console.serve.collection(who, asked.must("collection")?)?.name.clone();
    let chosen = chosen(console, who, asked).await?;
    let groups = actions::dead_groups(&console.serve, who, Some(&name), &Chosen { all: false, ..chosen.clone() }).await?;
    let total: i64 = groups.iter().map(|group| group.count).sum();
    let about = match (asked.number::<i64>("id")?, asked.number::<i64>("example")?) {
        (Some(id), _) => Some(text(&format!("key {}", dead::find(console, who, id).await?.key))),
        (None, Some(_)) => groups.first().map(|group| text(group.last_error.as_deref().unwrap_or("no error was recorded"))),
        (None, None) => None,
    };
    let flags = match (&chosen.ids, &chosen.reason) {
        (Some(ids), _) => format!(" {}", ids.iter().map(i64::to_string).collect::<Vec<_>>().join(" ")),
        (None, Some(reason)) => format!(" --collection {} --reason {}", shell_word(&name), shell_word(reason)),
        (None, None) => format!(" --collection {}", shell_word(&name)),
    };
    let mut hidden = vec![("collection", name.clone())];
    for field in ["id", "example"] {
        hidden.extend(asked.get(field).map(|value| (field, value.to_owned())));
    }
    let more = if groups.len() as i64 == MOST_LETTERS { " or more" } else { "" };
    let (verb, says, fields) = match act {
        Act::Replay => (
            "Replay",
            vec![
                "Each becomes a job again, due at once. A worker looks at both sides and writes what differs.".to_owned(),
                "If the cause is not fixed they are refused again, five times over a quarter of an hour, and come back here.".to_owned(),
            ],
            Vec::new(),
        ),
        _ => (
            "Discard",
            vec![
                "The letters are deleted for good, and nothing is indexed.".to_owned(),
                "Search goes on lacking these documents, until somebody writes their rows again or an audit repairs them.".to_owned(),
            ],
            vec![Field::text("typed", format!("Type the name of the collection: {name}"), "so that it is sure which one is meant")],
        ),
    };
    let word = if act == Act::Replay { "replay" } else { "discard" };
    Ok(Words {
        title: format!("{verb} dead letters of {name}"),
        about,
        big: Some(format!("{}{more}", of(total, "dead letter"))),
        says,
        fields,
        hidden,
        go: format!("{verb} {}", if total == 1 { "it".into() } else { format!("{}{more}", count(total)) }),
        back: text::link("/dead", &[("collection", &name)]),
        command: format!("catchword dead {word}{flags}"),
    })
}

/// How many keys it would be, and how long that takes.
async fn dry_run(console: &Console, who: &Who, asked: &Asked) -> Result<Words, Problem> {
    let trial = reindexes::trial(console, who, asked).await?;
    let name = trial.collection.clone();
    let mut says = vec![
        match trial.seconds {
            Some(seconds) => format!("About {}, {}.", span(seconds.max(1.0)), trial.how),
            None => "How long it takes is not known.".into(),
        },
        "Workers schedule the keys in small pieces; live writes come first, all the time.".into(),
        if trial.rewrite {
            "Every document is written again, also where both sides agree."
        } else {
            "Only documents that differ are written."
        }
        .into(),
        "You can pause it, slow it down or cancel it while it runs.".into(),
    ];
    if trial.keys == Some(0) {
        says = vec!["Nothing matches, so there is nothing to reindex. Choose something else.".into()];
    } else if trial.hidden {
        says.push("Keys that the view does not return are looked at too, to make sure that they are gone from the index.".into());
    }
    Ok(Words {
        title: format!("Reindex {name}: {}", text::line(&trial.what)),
        about: None,
        big: Some(trial.keys.map_or("more keys than could be counted".into(), |keys| of(keys, "key"))),
        says,
        fields: Vec::new(),
        hidden: trial.fields,
        go: match trial.keys {
            Some(0) => String::new(),
            Some(keys) => format!("Reindex {}", of(keys, "key")),
            None => "Reindex".into(),
        },
        back: text::link("/reindexes/new", &[("collection", &name)]),
        command: trial.command,
    })
}

async fn about_reindex(console: &Console, who: &Who, act: Act, asked: &Asked) -> Result<Words, Problem> {
    let id = asked.number::<i64>("id")?.ok_or_else(|| Problem::bad("id", "id is missing", "choose a reindex"))?;
    let found = reindexes::find(console, who, id).await?;
    let what = format!("reindex {id} of {} ({})", found.collection, text::line(&found.what));
    let (verb, go, said, command) = match act {
        Act::PauseReindex => {
            ("Pause", "Pause it", "No more keys of it are scheduled until it is resumed. What is scheduled is still worked on.", "pause")
        }
        Act::ResumeReindex => ("Resume", "Resume it", "Workers go on scheduling its keys.", "resume"),
        Act::RateReindex => {
            ("Change the speed of", "Set the limit", "At most so many keys are scheduled in a second. Empty: no limit.", "rate")
        }
        _ => ("Cancel", "Cancel it", "Its open jobs are deleted. What is written stays written.", "cancel"),
    };
    let rate = Field {
        kind: "number",
        value: found.rate.map_or(String::new(), |rate| rate.to_string()),
        required: false,
        ..Field::text("rate", "Keys per second", "empty: as fast as the workers can")
    };
    Ok(Words {
        title: format!("{verb} {what}"),
        about: None,
        big: None,
        says: vec![said.into()],
        fields: if act == Act::RateReindex { vec![rate] } else { Vec::new() },
        hidden: vec![("id", id.to_string())],
        go: go.into(),
        back: format!("/reindexes/{id}"),
        command: format!("catchword reindex {command} {id}"),
    })
}
