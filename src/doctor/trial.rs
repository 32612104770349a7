//! Does what a worker does to a row work on this table? It is done to one row, and undone.

use sqlx::PgConnection;

use super::line::{Line, fail, ok};
use crate::Error;
use crate::collection::Collection;

pub(super) async fn look(connection: &mut PgConnection, collection: &Collection) -> Result<Vec<Line>, Error> {
    let refused = collection.try_draw(connection).await?;
    Ok(vec![match refused {
        None => ok("touch", "a row can be given a new number without a write to it"),
        // whether a worker has that right is told where rights are; a reader needs none
        Some(why) if why.contains("permission denied for function draw") => {
            ok("touch", "not tried, because this role may not give rows new numbers: run doctor as a worker")
        }
        Some(why) => fail(
            "touch",
            format!("no row can be given a new number, so related changes and reindex --rewrite fail: {why}"),
            "let the owner of the schema catchword own the table, then run: catchword migrate",
        ),
    }])
}
