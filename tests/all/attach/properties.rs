//! Any sequence of SQL leaves jobs for exactly the keys that changed, touches for exactly the related values, and numbers that keep
//! their rules. A failing sequence prints its SQL and can be run again: `PROPERTY_SEED=7 cargo test --test all properties`.

use std::collections::{BTreeMap, BTreeSet};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection};

use crate::attach::{attach, collection_lines, item};
use crate::common::{Layout, World};

const SEQUENCES: u64 = 300;
/// `item` schedules every update, `watched` only those of its text.
const TABLES: [&str; 2] = ["item", "watched"];
const TRIGGERS: [&str; 5] =
    ["zzz_catchword_{}_revision", "catchword_{}_inserted", "catchword_{}_updated", "catchword_{}_deleted", "catchword_{}_truncated"];
const TOUCH_TRIGGERS: [&str; 4] = ["insert", "update", "delete", "truncate"];

#[tokio::test(flavor = "multi_thread")]
async fn any_sequence_of_sql_leaves_jobs_for_exactly_the_keys_that_changed() {
    any_sequence(world(item).await).await;
}

/// With a trigger for each row, and rows that move between partitions.
#[tokio::test(flavor = "multi_thread")]
async fn any_sequence_of_sql_on_partitioned_tables_does_too() {
    any_sequence(world(partitioned_item).await).await;
}

fn partitioned_item(name: &str, key_type: &str) -> String {
    let partitions: String =
        (0..3).map(|n| format!("create table {name}_{n} partition of {name} for values with (modulus 3, remainder {n});")).collect();
    item(name, key_type).replacen(
        "catchword_revision bigint);",
        &format!("catchword_revision bigint) partition by hash (id); {partitions}"),
        1,
    )
}

async fn any_sequence(world: World) {
    let mut connection = PgConnection::connect(&world.database_url).await.unwrap();
    let seeds = match std::env::var("PROPERTY_SEED") {
        Ok(seed) => seed.parse().map(|seed: u64| seed..seed + 1).unwrap(),
        Err(_) => {
            let first = u64::from(rand::random::<u32>());
            first..first + SEQUENCES
        }
    };
    for seed in seeds {
        if let Err(why) = Sequence::new(seed).run(&mut connection).await {
            panic!("{why}\n\nagain with PROPERTY_SEED={seed}");
        }
    }
}

/// Otherwise the sequences would prove nothing.
#[tokio::test(flavor = "multi_thread")]
async fn without_any_one_trigger_some_sequence_fails() {
    let world = world(item).await;
    let mut connection = PgConnection::connect(&world.database_url).await.unwrap();
    let own = TABLES.iter().flat_map(|table| TRIGGERS.map(|trigger| (*table, trigger.replace("{}", table))));
    let related = TABLES.iter().flat_map(|table| TOUCH_TRIGGERS.map(|kind| ("label", format!("catchword_{table}_1_{kind}"))));
    for (table, trigger) in own.chain(related) {
        world.sql(&format!("alter table {table} disable trigger {trigger}")).await;
        let mut failed = false;
        for seed in 0..SEQUENCES {
            failed = Sequence::new(seed).run(&mut connection).await.is_err();
            if failed {
                break;
            }
        }
        assert!(failed, "nobody misses {trigger} on {table}");
        world.sql(&format!("alter table {table} enable trigger {trigger}")).await;
    }
}

async fn world(item: fn(&str, &str) -> String) -> World {
    let touches = "touches = [{ table = \"label\", column = \"name\", row_column = \"label\" }]";
    attach(Layout {
        sql: format!(
            "{}{} alter table item add column label text; alter table watched add column label text; create table label (name text primary key, colour text);",
            item("item", "bigint"),
            item("watched", "bigint")
        ),
        more: collection_lines("item", touches) + &collection_lines("watched", &format!("{touches}\nwatch = [\"text\"]")),
        ..Layout::default()
    })
    .await
}

/// What the tables are to hold, and what the open transaction has changed so far.
#[derive(Clone, Default)]
struct Model {
    /// Per table: key, text, label.
    rows: [BTreeMap<i64, (String, String)>; 2],
    labels: BTreeSet<String>,
    /// Table and key of what changed.
    changed: BTreeSet<(usize, i64)>,
    touched: BTreeSet<String>,
}

struct Sequence {
    random: StdRng,
    model: Model,
    /// The number of each key, of its row or of its delete, as of the last commit.
    numbers: BTreeMap<(usize, i64), i64>,
    said: Vec<String>,
}

impl Sequence {
    fn new(seed: u64) -> Sequence {
        Sequence { random: StdRng::seed_from_u64(seed), model: Model::default(), numbers: BTreeMap::new(), said: Vec::new() }
    }

    /// A few transactions; after each one jobs and numbers are compared with what was to be expected.
    async fn run(mut self, connection: &mut PgConnection) -> Result<(), String> {
        let fresh = "set synchronous_commit = off; delete from item; delete from watched; delete from label; delete from catchword.record; delete from catchword.job";
        sqlx::raw_sql(fresh).execute(&mut *connection).await.map_err(|error| error.to_string())?;
        for _ in 0..self.random.random_range(1..=5) {
            let done = self.transaction(connection).await;
            if done.is_err() {
                _ = sqlx::raw_sql("rollback").execute(&mut *connection).await;
            }
            done.map_err(|why| format!("{why}, after:\n{}", self.said.join(";\n")))?;
        }
        Ok(())
    }

    async fn transaction(&mut self, connection: &mut PgConnection) -> Result<(), String> {
        let before = self.model.clone();
        self.say(connection, "begin").await?;
        for _ in 0..self.random.random_range(1..=4) {
            if self.random.random_bool(0.25) {
                let kept = self.model.clone();
                self.say(connection, "savepoint here").await?;
                self.statement(connection).await?;
                if self.random.random_bool(0.3) {
                    self.fail(connection).await?;
                }
                if self.random.random_bool(0.7) {
                    self.say(connection, "rollback to savepoint here").await?;
                    self.model = kept;
                } else {
                    self.say(connection, "release savepoint here").await?;
                }
            } else {
                self.statement(connection).await?;
            }
        }
        if self.random.random_bool(0.2) {
            self.say(connection, "rollback").await?;
            self.model = before;
        } else {
            self.say(connection, "commit").await?;
        }
        self.compare(connection).await
    }

    async fn say(&mut self, connection: &mut PgConnection, sql: &str) -> Result<(), String> {
        self.said.push(sql.to_owned());
        let done = sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(connection).await;
        done.map(|_| ()).map_err(|error| error.to_string())
    }

    /// A statement that fails half-way, and the savepoint that undoes it.
    async fn fail(&mut self, connection: &mut PgConnection) -> Result<(), String> {
        self.say(connection, "savepoint deeper").await?;
        let failed = self.say(connection, "insert into item (id) select i % 3 from generate_series(7, 12) i").await;
        assert!(failed.is_err());
        self.say(connection, "rollback to savepoint deeper").await
    }

    async fn statement(&mut self, connection: &mut PgConnection) -> Result<(), String> {
        let n = self.random.random_range(0..2);
        let (table, from) = (TABLES[n], self.random.random_range(1..12_i64));
        let to = from + self.random.random_range(0..4);
        let some = format!("id between {from} and {to}");
        let text = format!("t{}", self.random.random_range(0..3));
        let label = format!("l{}", self.random.random_range(0..4));
        let series = format!("select i, '{text}', '{label}' from generate_series({from}, {to}) i");
        let here: Vec<i64> = self.model.rows[n].range(from..=to).map(|(key, _)| *key).collect();
        let absent: Vec<i64> = (from..=to).filter(|key| !here.contains(key)).collect();
        match self.random.random_range(0..14) {
            0..=1 => {
                self.model.insert(n, &absent, &text, &label);
                let sql = format!("insert into {table} (id, text, label) {series} on conflict do nothing");
                self.say(connection, &sql).await
            }
            2 => {
                self.model.insert(n, &absent, &text, &label);
                self.model.update(n, &here, Some(&text), None);
                let sql = format!("insert into {table} (id, text, label) {series} on conflict (id) do update set text = excluded.text");
                self.say(connection, &sql).await
            }
            3..=4 => {
                self.model.update(n, &here, Some(&text), None);
                self.say(connection, &format!("update {table} set text = '{text}' where {some}")).await
            }
            5 => {
                self.model.update(n, &here, None, Some(&label));
                self.say(connection, &format!("update {table} set label = '{label}' where {some}")).await
            }
            6 => {
                self.model.delete(n, &here);
                self.say(connection, &format!("delete from {table} where {some}")).await
            }
            7 => {
                // up out of the range where everything happens, or down again, where the keys are free
                let by = if self.random.random_bool(0.5) { 100 } else { -100 };
                let moved: Vec<i64> = self.model.rows[n].keys().copied().filter(|key| (from..=to).contains(&(key % 100))).collect();
                let moved: Vec<i64> = moved.into_iter().filter(|key| self.model.is_free(n, key + by)).collect();
                self.model.move_keys(n, &moved, by);
                let list = moved.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
                let sql = format!("update {table} set id = id + {by} where id = any ('{{{list}}}')");
                self.say(connection, &sql).await
            }
            8 => {
                let all: Vec<i64> = self.model.rows[n].keys().copied().collect();
                self.model.delete(n, &all);
                self.say(connection, &format!("truncate {table}")).await
            }
            9 => {
                self.model.insert(n, &absent, &text, &label);
                self.copy(connection, table, &absent, &text, &label).await
            }
            10 => {
                let (even, odd): (Vec<i64>, Vec<i64>) = here.iter().partition(|key| *key % 2 == 0);
                self.model.delete(n, &even);
                self.model.update(n, &odd, Some(&text), None);
                self.model.insert(n, &absent, &text, &label);
                // the same before there was a merge
                let apart = format!(
                    "with s (id, text, label) as ({series}), gone as (delete from {table} t using s where t.id = s.id and t.id % 2 = 0),
                          changed as (update {table} t set text = s.text from s where t.id = s.id and t.id % 2 <> 0)
                     insert into {table} (id, text, label) select s.id, s.text, s.label from s where not exists (select from {table} t where t.id = s.id)"
                );
                let merged = format!(
                    "merge into {table} t using ({series}) as s (id, text, label) on t.id = s.id when matched and t.id % 2 = 0 then delete when matched then update set text = s.text when not matched then insert (id, text, label) values (s.id, s.text, s.label)"
                );
                let merges = connection.server_version_num().is_none_or(|version| version >= 150_000);
                self.say(connection, if merges { &merged } else { &apart }).await
            }
            _ => self.related(connection, &label).await,
        }
    }

    async fn copy(&mut self, connection: &mut PgConnection, table: &str, keys: &[i64], text: &str, label: &str) -> Result<(), String> {
        let sql = format!("copy {table} (id, text, label) from stdin");
        self.said.push(format!("{sql} -- {keys:?} {text} {label}"));
        let lines: String = keys.iter().map(|key| format!("{key}\t{text}\t{label}\n")).collect();
        let said = |error: sqlx::Error| error.to_string();
        let mut copy = connection.copy_in_raw(&sql).await.map_err(said)?;
        copy.send(lines.as_bytes()).await.map_err(said)?;
        copy.finish().await.map_err(said).map(|_| ())
    }

    /// A change in the related table.
    async fn related(&mut self, connection: &mut PgConnection, label: &str) -> Result<(), String> {
        let there = self.model.labels.contains(label);
        let other = format!("l{}", self.random.random_range(0..4));
        match self.random.random_range(0..10) {
            0..=3 if !there => {
                self.model.labels.insert(label.to_owned());
                self.model.touched.insert(label.to_owned());
                self.say(connection, &format!("insert into label (name) values ('{label}')")).await
            }
            0..=4 => {
                self.model.touched.extend(there.then(|| label.to_owned()));
                let sql = format!("update label set colour = 'red' where name = '{label}'");
                self.say(connection, &sql).await
            }
            5..=6 if there && !self.model.labels.contains(&other) => {
                self.model.labels.remove(label);
                self.model.labels.insert(other.clone());
                self.model.touched.extend([label.to_owned(), other.clone()]);
                let sql = format!("update label set name = '{other}' where name = '{label}'");
                self.say(connection, &sql).await
            }
            5..=8 => {
                self.model.labels.remove(label);
                self.model.touched.extend(there.then(|| label.to_owned()));
                self.say(connection, &format!("delete from label where name = '{label}'")).await
            }
            _ => {
                let all = std::mem::take(&mut self.model.labels);
                self.model.touched.extend(all);
                self.say(connection, "truncate label").await
            }
        }
    }

    /// After a transaction: jobs, touches, rows and numbers are as expected. Then nothing counts as changed any more.
    async fn compare(&mut self, connection: &mut PgConnection) -> Result<(), String> {
        let changed = std::mem::take(&mut self.model.changed);
        let touched = std::mem::take(&mut self.model.touched);
        let found = found(connection).await.map_err(|error| error.to_string())?;
        let of = |kind: &str, table: &str| found.get(&(kind.to_owned(), table.to_owned())).cloned().unwrap_or_default();
        for (n, table) in TABLES.into_iter().enumerate() {
            let wanted = changed.iter().filter(|(table, _)| *table == n).map(|(_, key)| key.to_string());
            same(&format!("jobs of {table}"), &of("index", table), wanted.collect())?;
            let wanted = touched.iter().map(|value| format!("label={value}"));
            same(&format!("touches of {table}"), &of("touch", table), wanted.collect())?;
            let wanted = self.model.rows[n].keys().map(i64::to_string);
            same(&format!("keys of {table}"), &of("row", table), wanted.collect())?;
            self.numbers_keep_their_rules(n, &changed, &of("row", table), &of("gone", table))?;
        }
        Ok(())
    }

    /// A row's is even and a delete's odd; what changed has a higher one than before, and nothing else has a new one.
    fn numbers_keep_their_rules(
        &mut self,
        n: usize,
        changed: &BTreeSet<(usize, i64)>,
        rows: &BTreeMap<String, i64>,
        gone: &BTreeMap<String, i64>,
    ) -> Result<(), String> {
        let odd_row = rows.iter().find(|(_, number)| *number % 2 != 0);
        let even_delete = gone.iter().find(|(_, number)| *number % 2 != 1);
        if let Some((key, number)) = odd_row.or(even_delete) {
            return Err(format!("{key} of {} has the number {number}", TABLES[n]));
        }
        let all: BTreeSet<&String> = rows.keys().chain(gone.keys()).collect();
        for text in all {
            let key = (n, text.parse().map_err(|_| format!("{text} is no key"))?);
            let (row, delete) = (rows.get(text), gone.get(text));
            let number = *row.or(delete).unwrap_or(&0);
            if delete > Some(&number) {
                return Err(format!("the row {key:?} has {number}, and hides behind its delete, {delete:?}"));
            }
            let before = self.numbers.insert(key, number);
            let right = if changed.contains(&key) { Some(number) > before } else { Some(number) == before };
            if !right {
                return Err(format!("{key:?} had {before:?} and has {number}; changed: {}", changed.contains(&key)));
            }
        }
        match changed.iter().find(|key| key.0 == n && !self.numbers.contains_key(key)) {
            Some(key) => Err(format!("{key:?} changed and has no number")),
            None => Ok(()),
        }
    }
}

impl Model {
    fn insert(&mut self, n: usize, keys: &[i64], text: &str, label: &str) {
        for key in keys {
            self.rows[n].insert(*key, (text.to_owned(), label.to_owned()));
            self.changed.insert((n, *key));
        }
    }

    fn update(&mut self, n: usize, keys: &[i64], text: Option<&str>, label: Option<&str>) {
        for key in keys {
            let Some(row) = self.rows[n].get_mut(key) else { continue };
            let seen = TABLES[n] == "item" || text.is_some_and(|text| text != row.0);
            if let Some(text) = text {
                row.0 = text.to_owned();
            }
            if let Some(label) = label {
                row.1 = label.to_owned();
            }
            if seen {
                self.changed.insert((n, *key));
            }
        }
    }

    fn delete(&mut self, n: usize, keys: &[i64]) {
        for key in keys {
            self.rows[n].remove(key);
            self.changed.insert((n, *key));
        }
    }

    fn is_free(&self, n: usize, key: i64) -> bool {
        key > 0 && key < 1000 && !self.rows[n].contains_key(&key)
    }

    fn move_keys(&mut self, n: usize, keys: &[i64], by: i64) {
        for key in keys {
            if let Some(row) = self.rows[n].remove(key) {
                self.rows[n].insert(key + by, row);
                self.changed.extend([(n, *key), (n, key + by)]);
            }
        }
    }
}

/// What is in the tables: kind and collection, keys, and the number of each. The jobs are taken away.
async fn found(connection: &mut PgConnection) -> Result<BTreeMap<(String, String), BTreeMap<String, i64>>, sqlx::Error> {
    let everything = "
        with taken as (delete from catchword.job returning name, collection, key)
        select name, collection, key, 0::bigint from taken
        union all select 'row', 'item', id::text, coalesce(catchword_revision, -1) from item
        union all select 'row', 'watched', id::text, coalesce(catchword_revision, -1) from watched
        union all select 'gone', collection, key, revision from catchword.record";
    let mut found: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
    for (kind, collection, key, number) in sqlx::query_as(everything).fetch_all(connection).await? {
        found.entry((kind, collection)).or_default().insert(key, number);
    }
    Ok(found)
}

fn same(what: &str, found: &BTreeMap<String, i64>, wanted: BTreeSet<String>) -> Result<(), String> {
    let found: BTreeSet<String> = found.keys().cloned().collect();
    if found == wanted { Ok(()) } else { Err(format!("{what} are {found:?}, not {wanted:?}")) }
}
