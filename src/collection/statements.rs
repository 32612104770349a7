//! The one place where a name is put into SQL. The names come quoted from Postgres itself (`load.sql`); values are always bound, but for
//! the settings that go with a `begin`: nothing can be bound there, and they go as numbers and hexadecimal digits.

use std::time::Duration;

use serde_json::Value;
use sqlx::AssertSqlSafe;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{Connection, PgConnection, Postgres};
use uuid::Uuid;

use super::KeyType;

/// The statements of one collection, with its names filled in once.
#[derive(Clone, Debug)]
pub(super) struct Statements {
    pub versions: String,
    pub wants: String,
    pub bodies: String,
    pub now: String,
    pub numbers: String,
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
    pub doubled: String,
    /// Where the view has ids of its own.
    pub ids: Option<String>,
}

impl Statements {
    /// Fills in the quoted names that `load.sql` returned.
    pub fn fill(names: &Value, has_ids: bool) -> Statements {
        let has_period = names["period"].is_string();
        let fill = |template: &str| fill_in(template, names);
        let of_period = |template: &str| has_period.then(|| fill(template));
        let bodies = fill(include_str!("bodies.sql"));
        Statements {
            versions: fill(include_str!("versions.sql")),
            wants: fill(include_str!("wants.sql")),
            now: fill(include_str!("now.sql")),
            numbers: fill(include_str!("numbers.sql")),
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
            doubled: fill(include_str!("doubled.sql")),
            ids: has_ids.then(|| fill(include_str!("ids.sql"))),
        }
    }
}

/// Puts names in their places. In one go: a name may itself look like a place. As `catchword.fill` does: what a name stands for may have a
/// hole, and then it is an array of the texts around it; `{t_at $1}` puts `$1` there.
fn fill_in(template: &str, names: &Value) -> String {
    let (mut filled, mut rest) = (String::with_capacity(template.len()), template);
    while let Some(at) = rest.find('{') {
        filled.push_str(&rest[..at]);
        rest = &rest[at..];
        // a brace that is no place is the statement's own
        let (name, after) = place(rest, names).unwrap_or(("{".into(), &rest[1..]));
        filled.push_str(&name);
        rest = after;
    }
    filled + rest
}

/// What the place stands for that a text begins with, and what follows it.
fn place<'t>(text: &'t str, names: &Value) -> Option<(String, &'t str)> {
    let (inside, after) = text.strip_prefix('{')?.split_once('}')?;
    let (name, hole) = inside.split_once(' ').map_or((inside, None), |(name, hole)| (name, Some(hole)));
    let says = match (names.get(name)?, hole) {
        (Value::String(says), None) => says.clone(),
        (Value::Array(around), Some(hole)) => around.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(hole),
        _ => return None,
    };
    Some((says, after))
}

/// The letters of a tag that a trigger keeps.
const LONGEST_TAG: usize = 100;

type Statement = Query<'static, Postgres, PgArguments>;

/// A filled statement, ready for its values.
pub(super) fn filled(sql: &str) -> Statement {
    sqlx::query(AssertSqlSafe(sql.to_owned()))
}

/// The beginning of a transaction that says of its jobs how long they wait, of which request they are, and who asked: in one round trip.
/// Whatever the tag is, it fails no write: it is cut as the trigger cuts it, and a zero byte, which Postgres takes in no text, is left out.
pub fn begin_saying(delay: Option<Duration>, traceparent: Option<&str>, tag: Option<&str>) -> AssertSqlSafe<String> {
    let tag = tag.map(|tag| tag.chars().filter(|letter| *letter != '\0').take(LONGEST_TAG).collect::<String>());
    let settings = [
        delay.map(|delay| set_locally("delay", &delay.as_secs().to_string())),
        traceparent.map(|traceparent| set_locally("traceparent", traceparent)),
        tag.map(|tag| set_locally("tag", &tag)),
    ];
    AssertSqlSafe(settings.into_iter().flatten().fold("begin isolation level read committed".to_owned(), |begin, set| begin + "; " + &set))
}

/// Sets what the trigger reads, until the end of the transaction. Digits and hyphens go as they are, by a statement that needs no plan.
/// What the caller chose goes as hexadecimal digits, so that it is never read as SQL.
fn set_locally(name: &str, value: &str) -> String {
    if value.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-') {
        return format!("set local catchword.{name} = '{value}'");
    }
    let digits: String = value.bytes().map(|byte| format!("{byte:02x}")).collect();
    let text = format!("pg_catalog.convert_from(pg_catalog.decode('{digits}', 'hex'), 'UTF8')");
    format!("select pg_catalog.set_config('catchword.{name}', {text}, true)")
}

/// Runs a statement that reads the view, under the path that the view's functions expect. See `path.sql`.
pub(super) async fn read_view(connection: &mut PgConnection, statement: Statement) -> Result<Vec<PgRow>, sqlx::Error> {
    let mut savepoint = connection.begin().await?;
    sqlx::query(include_str!("path.sql")).execute(&mut *savepoint).await?;
    let read = statement.fetch_all(&mut *savepoint).await;
    savepoint.rollback().await?;
    read
}

/// Binds keys where a statement says `{v_at $1}`. Postgres takes longer to read the text of a uuid than to find its row, so uuids go as
/// they are. What is no uuid has no row.
pub(super) fn with_keys(query: Statement, key_type: &KeyType, keys: &[impl AsRef<str>]) -> Statement {
    let keys = keys.iter().map(AsRef::as_ref);
    if key_type.is_uuid() {
        query.bind(keys.filter_map(|key| Uuid::try_parse(key).ok()).collect::<Vec<_>>())
    } else {
        query.bind(keys.collect::<Vec<&str>>())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{fill_in, set_locally};

    #[test]
    fn what_a_caller_chose_is_never_read_as_sql() {
        assert_eq!(set_locally("delay", "60"), "set local catchword.delay = '60'");
        assert_eq!(set_locally("traceparent", "00-0af7-b7ad-01"), "set local catchword.traceparent = '00-0af7-b7ad-01'");
        for tag in ["'; drop table note; --", "a\\'b", "import $$", "é"] {
            let set = set_locally("tag", tag);
            assert!(set.starts_with("select pg_catalog.set_config('catchword.tag', pg_catalog.convert_from(pg_catalog.decode('"), "{set}");
            assert!(!set.contains(tag), "{set}");
        }
    }

    #[test]
    fn a_name_that_looks_like_a_place_is_a_name() {
        let names = json!({ "key": "\"{view}\"", "view": "\"{key}\"", "at": ["x = any(", "::int[], ", ")"] });
        let filled = fill_in("select {key}, '{}' from {view} where {at $1} {at} {key x} {other", &names);
        assert_eq!(filled, "select \"{view}\", '{}' from \"{key}\" where x = any($1::int[], $1) {at} {key x} {other");
    }
}
