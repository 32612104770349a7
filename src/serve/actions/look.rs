//! What only looks.

use crate::explain::Explanation;
use crate::journal::{self as library, Line};
use crate::serve::{Problem, Serve, Who, input_error};

/// Lines of the journal in one answer.
pub const MOST_LINES: i64 = 1_000;

/// What both sides know of a key. Without `--show-documents` nothing of what is in the document is told.
pub async fn explain(serve: &Serve, who: &Who, collection: &str, key: &str) -> Result<Explanation, Problem> {
    let config = serve.collection(who, collection)?;
    let mut explanation = serve.catchword.explain(config, key).await.map_err(input_error("key"))?;
    if !serve.options.show_documents {
        explanation.hide_contents();
    }
    Ok(explanation)
}

/// The newest lines of the journal. Whoever may see some collections only sees what was done to these.
pub async fn journal(serve: &Serve, who: &Who, collection: Option<&str>, limit: i64) -> Result<Vec<Line>, Problem> {
    let names = match (collection, &who.collections) {
        (None, None) => None,
        _ => Some(serve.chosen(who, collection)?),
    };
    Ok(library::journal_of(&mut *serve.connection().await?, names.as_deref(), limit.clamp(1, MOST_LINES)).await?)
}
