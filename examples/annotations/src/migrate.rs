//! The service's own tables, and the view.

use sqlx::PgPool;
use sqlx::migrate::MigrateError;

/// Creates the tables `document` and `annotation` and the view `annotation_document`, or brings
/// them up to date; done twice, the second time changes nothing.
///
/// Its bookkeeping is sqlx's own table `_sqlx_migrations`: these migrations are the application's.
/// `catchword migrate` keeps its own elsewhere, runs afterwards, and attaches what this made.
pub async fn migrate(pool: &PgPool) -> Result<(), MigrateError> {
    sqlx::migrate!("./migrations").run(pool).await
}
