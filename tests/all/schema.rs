//! The schema as it is made is the schema as it was meant: a golden file, read from the catalogs.

use catchword::migrate;

use crate::common::{Layout, World};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/schema.golden");
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
