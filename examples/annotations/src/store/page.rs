use sqlx::PgConnection;

/// The page of this address, made if it is new. A title is kept if the page has none yet: else any
/// writer could rename a page for everybody, and touch all its annotations each time.
pub(super) async fn page(conn: &mut PgConnection, web_uri: &str, title: Option<&str>) -> Result<i64, sqlx::Error> {
    let page = match find_page(conn, web_uri).await? {
        Some(page) => page,
        None => match insert_page(conn, web_uri, title).await? {
            Some(page) => return Ok(page),
            // somebody else made it meanwhile; the insert waited for their commit, so now it is seen
            None => find_page(conn, web_uri).await?.ok_or(sqlx::Error::RowNotFound)?,
        },
    };
    if let Some(title) = title {
        sqlx::query(include_str!("title_page.sql")).bind(page).bind(title).execute(conn).await?;
    }
    Ok(page)
}

async fn find_page(conn: &mut PgConnection, web_uri: &str) -> Result<Option<i64>, sqlx::Error> {
    sqlx::query_scalar(include_str!("find_page.sql")).bind(web_uri).fetch_optional(conn).await
}

async fn insert_page(conn: &mut PgConnection, web_uri: &str, title: Option<&str>) -> Result<Option<i64>, sqlx::Error> {
    sqlx::query_scalar(include_str!("insert_page.sql")).bind(web_uri).bind(title).fetch_optional(conn).await
}
