//! The schema as it is made is the schema as it was meant: a golden file, read from the catalogs.

use std::path::Path;

use catchword::{job, migrate};
use serde_json::{Value, json};
use sqlx::migrate::Migrator;

use crate::common::{Layout, World};

const MIGRATIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/migrations");
const CHECKSUMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/migrations/SHA384SUMS");
const RENEW_CHECKSUMS: &str = "RENEW_CHECKSUMS=1 cargo test --locked --test all schema::";
const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/repo/schema.golden");
const RENEW: &str = "RENEW_SCHEMA=1 cargo test --locked --test all schema::";

async fn migrated() -> World {
    let world = World::with(Layout { migrated: false, ..Layout::default() }).await;
    migrate::apply(&world.pool).await.unwrap();
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn the_schema_is_the_golden_one() {
    let world = migrated().await;
    let lines: Vec<String> = world.all(include_str!("schema.sql")).await;
    let dumped = lines.join("\n") + "\n";
    if std::env::var_os("RENEW_SCHEMA").is_some() {
        std::fs::write(GOLDEN, &dumped).unwrap();
    }
    let golden = std::fs::read_to_string(GOLDEN).unwrap_or_default();
    let (was, is): (Vec<&str>, Vec<&str>) = (golden.lines().collect(), dumped.lines().collect());
    let gone = was.iter().filter(|line| !is.contains(line)).map(|line| format!("- {line}"));
    let new = is.iter().filter(|line| !was.contains(line)).map(|line| format!("+ {line}"));
    let changes: Vec<String> = gone.chain(new).collect();
    assert!(
        golden == dumped,
        "the schema is not the one of {GOLDEN}:\n{}\nIf this is meant, renew it and commit it: {RENEW}",
        changes.join("\n")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn every_table_column_sequence_and_function_has_a_comment() {
    let world = migrated().await;
    let silent: Vec<String> = world
        .all(
            "select c.oid::regclass::text from pg_class c
              where c.relnamespace = 'catchword'::regnamespace and c.relkind in ('r', 'v', 'S') and obj_description(c.oid, 'pg_class') is null
                and c.relname <> '_migrations' and not exists (select from pg_depend where objid = c.oid and deptype = 'i')
             union all
             select c.oid::regclass || '.' || a.attname from pg_class c join pg_attribute a on a.attrelid = c.oid
              where c.relnamespace = 'catchword'::regnamespace and c.relkind in ('r', 'v') and c.relname <> '_migrations'
                and a.attnum > 0 and not a.attisdropped and col_description(c.oid, a.attnum) is null
             union all
             select p.oid::regprocedure::text from pg_proc p
              where p.pronamespace = 'catchword'::regnamespace and obj_description(p.oid, 'pg_proc') is null
             order by 1",
        )
        .await;
    assert_eq!(silent, [""; 0], "say in the migration what these are for");
}

/// The names of the files in `migrations/`, in their order.
fn files() -> Vec<String> {
    let entries = std::fs::read_dir(MIGRATIONS).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn an_applied_migration_is_never_changed() {
    let migrator = Migrator::new(Path::new(MIGRATIONS)).await.unwrap();
    let files = files().into_iter().filter(|name| name.starts_with(|c: char| c.is_ascii_digit()));
    let versions: Vec<i64> = migrator.iter().map(|migration| migration.version).collect();
    assert_eq!(versions, (1..=versions.len() as i64).collect::<Vec<_>>(), "they are numbered without gaps");
    // as sha384sum writes it; sqlx writes the same checksum into every database
    let sums: String = migrator
        .iter()
        .zip(files)
        .map(|(migration, name)| format!("{}  {name}\n", migration.checksum.iter().map(|byte| format!("{byte:02x}")).collect::<String>()))
        .collect();
    if std::env::var_os("RENEW_CHECKSUMS").is_some() {
        std::fs::write(CHECKSUMS, &sums).unwrap();
    }
    let kept = std::fs::read_to_string(CHECKSUMS).unwrap_or_default();
    let other: Vec<&str> = sums.lines().filter(|line| !kept.contains(*line)).filter_map(|line| line.split("  ").nth(1)).collect();
    assert!(
        kept == sums,
        "these are not as in {CHECKSUMS}: {other:?}\n\
         A file that was applied is never changed, because every database has its checksum: add a new one.\n\
         A new file, or any file before 0.1.0 is published: {RENEW_CHECKSUMS}"
    );
}

#[test]
fn no_line_of_a_migration_is_too_long_to_read() {
    for name in files() {
        let text = std::fs::read_to_string(Path::new(MIGRATIONS).join(&name)).unwrap();
        let lines = text.lines().zip(1..).filter(|_| !name.ends_with("SUMS"));
        let long: Vec<u32> = lines.filter(|(line, _)| line.chars().count() > 120).map(|(_, number)| number).collect();
        assert_eq!(long, [0; 0], "{name}: these lines have over 120 columns");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_is_filled_once_and_whole() {
    let world = migrated().await;
    let fill = async |template: &str, names: Value| {
        let filled = sqlx::query_scalar("select catchword.fill($1, $2)").bind(template).bind(names).fetch_one(&world.pool).await;
        filled.map_err(|error: sqlx::Error| error.to_string())
    };
    let filled = |text: &str| Ok::<String, String>(text.to_owned());
    assert_eq!(fill("{a}-{b_c}{a}", json!({ "a": "1", "b_c": true, "unused": "x" })).await, filled("1-true1"));
    assert_eq!(fill("no place: [0-9]{1,4} {} { a }", json!({})).await, filled("no place: [0-9]{1,4} {} { a }"));
    // a column may have any name
    assert_eq!(fill("{a}{b}", json!({ "a": "{b}", "b": r"\1 %I $1" })).await, filled(r"{b}\1 %I $1"));
    for names in [json!({}), json!({ "a": null })] {
        let refused: Result<String, String> = fill("x {a}", names).await;
        assert!(refused.clone().is_err_and(|error| error.contains("{a}")), "{refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn priorities_are_the_same_on_both_sides() {
    let world = migrated().await;
    let all = "array[catchword.priority_quick(), catchword.priority_live(), catchword.priority_part(), catchword.priority_whole(), catchword.priority_called_off()]";
    let priorities: Vec<i32> = world.one(&format!("select {all}")).await;
    assert_eq!(priorities[..2], [job::QUICK, job::LIVE]);
    assert!(priorities.is_sorted_by(|before, after| before < after), "{priorities:?}");
}
