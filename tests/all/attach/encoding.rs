//! Databases in other encodings than UTF-8.

use sqlx::{AssertSqlSafe, Connection, PgConnection};

use crate::common::{Layout, World};

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_not_in_utf8_is_refused_before_anything_is_made() {
    let world = World::with(Layout { migrated: false, ..Layout::default() }).await;
    // before 15 there was only one
    let provider = if world.postgres().await < 15 { "" } else { "locale_provider libc" };
    for encoding in ["SQL_ASCII", "LATIN1"] {
        let name = format!("cw_test_{}_{}", uuid::Uuid::new_v4().simple(), encoding.to_lowercase());
        let create = format!("create database {name} encoding '{encoding}' template template0 {provider} lc_collate 'C' lc_ctype 'C'");
        world.sql(&create).await;
        let mut url = url::Url::parse(&world.database_url).unwrap();
        url.set_path(&name);
        let run = async |words: &[&str]| {
            let output = world.binary().env("DATABASE_URL", url.as_str()).args(words).output().await.unwrap();
            (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout))
        };
        for words in [&["migrate"][..], &["migrate", "--dry-run"]] {
            let (code, said) = run(words).await;
            assert!(code == Some(2) && said.contains(&format!("the encoding {encoding}, and catchword needs UTF8")), "{words:?}: {said}");
        }
        let mut there = PgConnection::connect(url.as_str()).await.unwrap();
        let made: bool = sqlx::query_scalar("select to_regnamespace('catchword') is not null").fetch_one(&mut there).await.unwrap();
        assert!(!made, "{encoding}");
        there.close().await.unwrap();
        let (_, said) = run(&["doctor"]).await;
        let line = said.lines().find(|line| line.contains("encoding") && line.contains("FAIL"));
        assert!(line.is_some_and(|line| line.contains(encoding)), "{said}");
        sqlx::raw_sql(AssertSqlSafe(format!("drop database {name} with (force)"))).execute(&world.pool).await.unwrap();
    }
}
