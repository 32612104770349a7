//! The one place where a name is put into SQL. The names come quoted from Postgres itself (`load.sql`); values are always bound.

use sqlx::AssertSqlSafe;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{Connection, PgConnection, Postgres, Row};
use uuid::Uuid;

use super::KeyType;

/// The statements of one collection, with its names filled in once.
#[derive(Clone, Debug)]
pub(super) struct Statements {
    pub versions: String,
    pub wants: String,
    pub bodies: String,
    pub now: String,
    pub explain: String,
    pub sample: String,
    pub shown: String,
    pub revisions: String,
    pub silence: String,
    pub number: String,
    pub highest: String,
    pub compared: String,
    pub first_keys: String,
    pub keys: String,
    /// With a period only.
    pub first_keys_since: Option<String>,
    pub keys_since: Option<String>,
    pub count_rows: String,
    pub unrecorded: String,
    /// The quoted name of the table.
    pub table: String,
    pub doubled: String,
}

impl Statements {
    /// Fills in the quoted names that `load.sql` returned.
    pub fn fill(row: &sqlx::postgres::PgRow) -> Result<Statements, sqlx::Error> {
        let key_type: String = row.try_get("key_type")?;
        let period: Option<String> = row.try_get("period_name")?;
        let names: [(&str, String); 7] = [
            ("{table}", row.try_get("table_name")?),
            ("{key}", row.try_get("key_name")?),
            ("{revision}", row.try_get("revision_name")?),
            ("{view}", row.try_get("view_name")?),
            ("{key_array}", if key_type == KeyType::Uuid.name() { "uuid[]".into() } else { format!("text[]::{key_type}[]") }),
            ("{key_type}", key_type),
            ("{period}", period.clone().unwrap_or_default()),
        ];
        let fill = |template: &str| fill_in(template, &names);
        let of_period = |template: &str| period.as_ref().map(|_| fill(template));
        let bodies = fill(include_str!("bodies.sql"));
        Ok(Statements {
            versions: fill(include_str!("versions.sql")),
            wants: fill(include_str!("wants.sql")),
            now: fill(include_str!("now.sql")),
            explain: format!("explain (format json) {bodies}"),
            bodies,
            sample: fill(include_str!("sample.sql")),
            shown: fill(include_str!("shown.sql")),
            revisions: fill(include_str!("revisions.sql")),
            silence: fill(include_str!("silence.sql")),
            number: fill(include_str!("number.sql")),
            highest: fill(include_str!("highest.sql")),
            compared: fill(include_str!("compared.sql")),
            first_keys: fill(include_str!("first_keys.sql")),
            keys: fill(include_str!("keys.sql")),
            first_keys_since: of_period(include_str!("first_keys_since.sql")),
            keys_since: of_period(include_str!("keys_since.sql")),
            count_rows: fill(include_str!("count_rows.sql")),
            unrecorded: fill(include_str!("unrecorded.sql")),
            table: row.try_get("table_name")?,
            doubled: fill(include_str!("doubled.sql")),
        })
    }
}

/// Puts names in their places. In one go: a name may itself look like a place.
fn fill_in(template: &str, names: &[(&str, String)]) -> String {
    let (mut filled, mut rest) = (String::with_capacity(template.len()), template);
    while let Some(at) = rest.find('{') {
        filled.push_str(&rest[..at]);
        rest = &rest[at..];
        // a brace that is no place is the statement's own
        let (place, name) =
            names.iter().find(|(place, _)| rest.starts_with(place)).map_or(("{", "{"), |(place, name)| (place, name.as_str()));
        filled.push_str(name);
        rest = &rest[place.len()..];
    }
    filled + rest
}

type Statement = Query<'static, Postgres, PgArguments>;

/// A filled statement, ready for its values.
pub(super) fn filled(sql: &str) -> Statement {
    sqlx::query(AssertSqlSafe(sql.to_owned()))
}

/// Runs a statement that reads the view, under the path that the view's functions expect. See `path.sql`.
pub(super) async fn read_view(connection: &mut PgConnection, statement: Statement) -> Result<Vec<PgRow>, sqlx::Error> {
    let mut savepoint = connection.begin().await?;
    sqlx::query(include_str!("path.sql")).execute(&mut *savepoint).await?;
    let read = statement.fetch_all(&mut *savepoint).await;
    savepoint.rollback().await?;
    read
}

/// Binds keys where a statement says `{key_array}`. Postgres takes longer to read the text of a uuid than to find its row, so uuids go as
/// they are. What is no uuid has no row.
pub(super) fn with_keys(query: Statement, key_type: KeyType, keys: &[impl AsRef<str>]) -> Statement {
    let keys = keys.iter().map(AsRef::as_ref);
    match key_type {
        KeyType::Uuid => query.bind(keys.filter_map(|key| Uuid::try_parse(key).ok()).collect::<Vec<_>>()),
        _ => query.bind(keys.collect::<Vec<&str>>()),
    }
}

#[cfg(test)]
mod tests {
    use super::fill_in;

    #[test]
    fn a_name_that_looks_like_a_place_is_a_name() {
        let names = [("{key}", "\"{view}\"".to_owned()), ("{view}", "\"{key}\"".to_owned())];
        assert_eq!(fill_in("select {key}, '{}' from {view} {other", &names), "select \"{view}\", '{}' from \"{key}\" {other");
    }
}
