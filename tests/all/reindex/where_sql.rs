//! `--where`: SQL of the migrator's own, which can only read.

use super::with_numbers;
use crate::common::World;
use crate::operate::roles::Roles;

#[tokio::test(flavor = "multi_thread")]
async fn the_rows_of_a_condition_are_scheduled_and_no_others() {
    let world = World::with(with_numbers(100)).await;
    world.reindexed(&["number", "--where", "id < 10 and code = 'even'"]).await;
    assert_eq!(world.walk("number").await, ["2", "4", "6", "8"]);
    let said = world.reindexed(&["number", "--where", "id in (select max(id) from number) -- the last", "--dry-run"]).await;
    assert!(said.starts_with("1 keys match --where"), "{said}");
    // hidden rows too, and every document again
    world.sql("update number set text = null where id = 50; delete from catchword.job where collection = 'number'").await;
    world.reindexed(&["number", "--where", "t.id between 49 and 51", "--hidden", "--rewrite"]).await;
    assert_eq!(world.walk("number").await, ["49", "50", "51"]);
    assert_eq!(world.one::<i64>("select count(*) from catchword.record where collection = 'number'").await, 3);
    let (code, _, said) = world.reindex(&["number", "--where", "false"]).await;
    assert!(code == 1 && said.contains("nothing matches --where"), "{said}");
    // a name means what it meant when it was written
    world.sql("create function public.wanted(bigint) returns boolean language sql as 'select $1 = 7'").await;
    let id = world.started(&["number", "--where", "wanted(id)"]).await;
    assert_eq!(
        // before 16 Postgres prints the table of a column where there is only one, too
        world
            .one::<String>(&format!("select replace(split_part(reads, 'WHERE ', 2), 't.', '') from catchword.reindex where id = {id}"))
            .await,
        "public.wanted(id)"
    );
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_condition_can_write_nothing_lock_nothing_and_be_no_second_statement() {
    let world = World::with(with_numbers(100)).await;
    world
        .sql(
            "create function public.writes() returns boolean language plpgsql as $$ begin delete from public.number; return true; end $$;
             create function public.opens() returns boolean language plpgsql as
               $$ begin perform set_config('transaction_read_only', 'off', true); delete from public.number; return true; end $$",
        )
        .await;
    for condition in [
        "writes()",
        "opens()",
        "true; drop table number",
        "true); drop table number; --",
        "true) ; delete from number where (true",
        "exists (select from number for update)",
        "exists (with gone as (delete from number returning id) select from gone)",
        "nextval('catchword.revision') > 0",
        "true) union all select 1 from (delete from number returning id",
        "/*",
        "",
        "nope = 1",
        "id",
    ] {
        for more in [&["--dry-run"][..], &[]] {
            let mut words = vec!["number", "--where", condition];
            words.extend(more);
            let (code, out, err) = world.reindex(&words).await;
            assert_eq!((code, out.as_str()), (2, ""), "{condition}: {err}");
            assert!(!err.contains("error returned from database"), "{err}");
        }
        // written down past the command, it fails where it is run
        let written =
            sqlx::query_scalar::<_, i64>("select catchword.reindex_where('number', $1)").bind(condition).fetch_one(&world.pool).await;
        if let Ok(id) = written {
            assert_eq!(world.fed("number").await, 0, "{condition}");
            assert!(world.progress(id).await.trouble.is_some(), "{condition}");
            world.sql(&format!("select catchword.cancel_reindex({id})")).await;
        }
    }
    assert_eq!(world.one::<i64>("select count(*) from number").await, 100);
    assert_eq!(world.walk("number").await.len(), 0);
    assert_eq!(world.one::<i64>("select count(*) from pg_class where relname = 'reindex_trial'").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_who_owns_the_schema_may_write_one() {
    let roles = Roles::new().await;
    roles.world.sql("insert into annotation (userid, target_uri, target_uri_normalized) values ('acct:a', 'u', 'u')").await;
    let run = async |role: &str| {
        let words = ["reindex", "annotation", "--where", "userid = 'acct:a'"];
        let output = roles.world.binary().env("DATABASE_URL", roles.url(role)).args(words).output().await.unwrap();
        (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for role in ["worker", "operator"] {
        let (code, said) = run(role).await;
        assert_eq!(code, 2, "{said}");
        assert!(said.contains("only the role that owns the schema catchword may run one; connect as the migrator"), "{said}");
        // nor by any other way
        let pool = roles.pool(role).await;
        for sql in [
            "select catchword.write_reindex('annotation', null, null, null, null, null, false, false, null, null, null, null, 'true', 'public')",
            "update catchword.reindex set condition = 'true', reads = 'select 1'",
            "insert into catchword.reindex (collection, hidden, rewrite, priority, tag, base, reads) values ('annotation', false, false, 100, 'x', now(), 'select 1')",
        ] {
            let refused = sqlx::query(sqlx::AssertSqlSafe(sql)).execute(&pool).await.unwrap_err().to_string();
            assert!(refused.contains("permission denied"), "{role}: {refused}");
        }
    }
    assert_eq!(roles.world.one::<i64>("select count(*) from catchword.reindex").await, 0);
    let (code, said) = run("migrator").await;
    assert_eq!(code, 0, "{said}");
    // and a worker runs it
    let worker = roles.world.binary().env("DATABASE_URL", roles.url("worker")).args(["sync", "--drain"]).output().await.unwrap();
    assert!(worker.status.success());
    assert_eq!(roles.world.one::<i64>("select settled from catchword.reindexes()").await, 1);
}
