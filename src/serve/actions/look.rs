//! What only looks.

use std::time::Duration;

use crate::explain::{Explanation, explain_in};
use crate::history::{self, Minute};
use crate::journal::{self as library, Line};
use crate::serve::{Problem, Serve, Who, input_error};

/// Lines of the journal in one answer.
pub const MOST_LINES: i64 = 1_000;

/// What both sides know of a key. Without `--show-documents` nothing of what is in the document is told.
pub async fn explain(serve: &Serve, who: &Who, collection: &str, key: &str) -> Result<Explanation, Problem> {
    let config = serve.collection(who, collection)?;
    let mut explanation = explain_in(&serve.catchword.context, &*serve.attached(config).await?, key).await.map_err(input_error("key"))?;
    if !serve.options.show_documents {
        explanation.hide_contents();
    }
    Ok(explanation)
}

/// So long minutes are kept.
pub const LONGEST_HISTORY: Duration = Duration::from_secs(8 * 24 * 3600);

/// What each minute of this span was like, the oldest first.
pub async fn history(serve: &Serve, who: &Who, collection: &str, span: Duration) -> Result<Vec<Minute>, Problem> {
    let name = &serve.collection(who, collection)?.name;
    Ok(history::read(&mut *serve.connection().await?, name, span.min(LONGEST_HISTORY)).await?)
}

/// The newest lines of the journal. Whoever may see some collections only sees what was done to these.
pub async fn journal(serve: &Serve, who: &Who, collection: Option<&str>, limit: i64) -> Result<Vec<Line>, Problem> {
    let names = match (collection, &who.collections) {
        (None, None) => None,
        _ => Some(serve.chosen(who, collection)?),
    };
    Ok(library::journal_of(&mut *serve.connection().await?, names.as_deref(), limit.clamp(1, MOST_LINES)).await?)
}
