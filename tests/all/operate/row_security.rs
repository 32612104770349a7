//! Tables with row security: every reader must see every row, and tenants go on seeing their own.

use catchword::{Catchword, Direct, Stored};
use sqlx::{AssertSqlSafe, PgConnection};

use super::roles::{Roles, run};
use crate::attach::recipe::recipe;
use crate::common::Layout;

const TABLES: &str = "
create table author (id bigint primary key, name text not null);
create table note (id bigint primary key, tenant text not null, author_id bigint not null references author, text text not null, catchword_revision bigint);
comment on column note.catchword_revision is 'catchword: revision';
create index on note (author_id);
create view note_document as select n.id as key, n.catchword_revision as revision,
  json_build_object('text', n.text || ' by ' || (select a.name from author a where a.id = n.author_id)) as body from note n;";

const POLICIES: &str = "
create policy tenants on note using (tenant = current_setting('app.tenant', true));
alter table author enable row level security;
create policy everybody on author using (current_setting('app.tenant', true) <> '');";

const LINES: &str = "
[[collection]]
name = \"note\"
table = \"note\"
key = \"id\"
view = \"note_document\"
mapping = \"bystander.json\"
touches = [{ table = \"author\", column = \"id\", row_column = \"author_id\" }]
delay = \"0s\"
";

/// The tables are the migrator's; nothing is migrated yet.
async fn tenants() -> Roles {
    let roles = Roles::prepared_with(Layout { sql: TABLES.into(), more: LINES.into(), ..Layout::default() }).await;
    let (migrator, application) = (roles.names.of("migrator"), roles.names.of("application"));
    roles
        .world
        .sql(&format!(
            "{POLICIES}
             alter table note owner to {migrator}; alter table author owner to {migrator}; alter view note_document owner to {migrator};
             grant select, insert, update, delete, truncate on note, author to {application}, {};
             insert into author values (1, 'mina'), (2, 'otto')",
            roles.names.of("service")
        ))
        .await;
    roles
}

async fn migrate(roles: &Roles) -> Result<(), String> {
    let migrated = Catchword::open(roles.config(), &roles.environment("migrator")).unwrap().migrate().await;
    roles.grant().await;
    migrated.map(|_| ()).map_err(|error| error.to_string())
}

async fn connect(roles: &Roles, role: &str) -> Result<Catchword, String> {
    Catchword::connect(roles.config(), &roles.environment(role)).await.map_err(|error| error.to_string())
}

/// The binary in this role: what it printed.
async fn said(roles: &Roles, role: &str, words: &[&str]) -> String {
    let output = roles.world.binary().env("DATABASE_URL", roles.url(role)).args(words).output().await.unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

async fn as_tenant(roles: &Roles, tenant: &str, sql: &str) {
    let application = roles.pool("application").await;
    run(&application, &format!("begin; set local app.tenant = '{tenant}'; {sql}; commit")).await.unwrap();
}

const SECURE: &str = "alter table note enable row level security";

#[tokio::test(flavor = "multi_thread")]
async fn a_table_with_policies_is_kept_in_step_for_every_tenant() {
    let roles = tenants().await;
    // as docs/adopt.md has it
    let recipe = recipe("Tenants and row security");
    let names = |sql: &str| sql.replace("app_worker", &roles.names.of("worker")).replace("app_operator", &roles.names.of("operator"));
    let world = &roles.world;
    world.sql("drop policy tenants on note").await;
    world.sql(&names(&recipe.sql)).await;
    migrate(&roles).await.unwrap();
    let worker = connect(&roles, "worker").await.unwrap();
    for (tenant, first) in [("red", 1), ("blue", 100)] {
        as_tenant(
            &roles,
            tenant,
            &format!("insert into note select i, '{tenant}', 1, 'of {tenant}' from generate_series({first}, {first} + 9) i"),
        )
        .await;
        as_tenant(&roles, tenant, "update note set text = text || ' changed' where id % 2 = 0; delete from note where id % 5 = 0").await;
    }
    worker.drain("test", &["note"]).await.unwrap();
    world.sides_agree("note").await;
    assert_eq!(world.found("note").await.len(), 16, "two of ten were deleted, of each tenant");
    let seen: i64 = {
        let mut tenant = roles.pool("application").await.acquire().await.unwrap().detach();
        sqlx::raw_sql("set app.tenant = 'red'").execute(&mut tenant).await.unwrap();
        sqlx::query_scalar("select count(*) from note").fetch_one(&mut tenant).await.unwrap()
    };
    assert_eq!(seen, 8, "a tenant sees its own rows");

    // a related row of everybody, a reindex through the migrator's functions, an audit, and an emptied table
    world.sql("update author set name = 'mina the second' where id = 1").await;
    worker.drain("test", &["note"]).await.unwrap();
    world.sides_agree("note").await;
    assert!(world.source("note", "101").await.unwrap()["text"].as_str().unwrap().ends_with("the second"));
    world.sql("delete from catchword.job").await;
    let reindexed = said(&roles, "worker", &["reindex", "note", "--all", "--yes"]).await;
    let jobs: i64 = world.one("select count(*) from catchword.job where collection = 'note'").await;
    assert_eq!(jobs, 16, "{reindexed}");
    worker.drain("test", &["note"]).await.unwrap();
    let audited = said(&roles, "worker", &["audit", "note"]).await;
    assert!(audited.contains("in step"), "{audited}");
    let doctor = said(&roles, "worker", &["doctor", "--json"]).await;
    assert!(doctor.contains("has policies, and none applies to catchword's readers"), "{doctor}");
    as_tenant(&roles, "red", "truncate note").await;
    worker.drain("test", &["note"]).await.unwrap();
    world.sides_agree("note").await;
    assert_eq!(world.found("note").await.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_a_policy_applies_to_is_refused_with_what_helps() {
    let roles = tenants().await;
    roles.world.sql(SECURE).await;
    migrate(&roles).await.unwrap();
    let role = roles.names.of("worker");
    let refused = connect(&roles, "worker").await.err().unwrap();
    let wanted = format!(
        "row security of public.note applies to the role {role}, which reads it, and a hidden row would look deleted; run \"alter role {role} bypassrls\""
    );
    assert!(refused.contains(&wanted), "{refused}");
    let doctor = said(&roles, "worker", &["doctor"]).await;
    assert!(doctor.contains(&format!("leave row security on, and run: alter role {role} bypassrls")), "{doctor}");
    assert!(!doctor.contains("disable row level"), "{doctor}");

    roles.world.sql(&format!("alter role {role} bypassrls")).await;
    let worker = connect(&roles, "worker").await.unwrap();
    // row security comes and goes while it runs: jobs wait, and nothing looks deleted
    as_tenant(&roles, "red", "insert into note values (1, 'red', 1, 'hello')").await;
    worker.drain("test", &["note"]).await.unwrap();
    roles.world.sql(&format!("alter role {role} nobypassrls")).await;
    as_tenant(&roles, "red", "update note set text = 'changed'").await;
    _ = worker.sync("test", &["note"]).await;
    assert_eq!(roles.world.source("note", "1").await.unwrap()["text"], "hello by mina");
    roles.world.sql(&format!("alter role {role} bypassrls")).await;
    let worker = connect(&roles, "worker").await.unwrap();
    roles.world.sql("update catchword.job set scheduled_at = now()").await;
    worker.drain("test", &["note"]).await.unwrap();
    roles.world.sides_agree("note").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forced_row_security_needs_a_migrator_that_bypasses_it() {
    let roles = tenants().await;
    let (migrator, world) = (roles.names.of("migrator"), &roles.world);
    world.sql(&format!("{SECURE}; alter table note force row level security; alter role {} bypassrls", roles.names.of("worker"))).await;
    let refused = migrate(&roles).await.unwrap_err();
    assert!(refused.contains(&format!("row security of public.note applies to the role {migrator}")), "{refused}");
    assert!(refused.contains(&format!("leave row security on, and run \"alter role {migrator} bypassrls\"")), "{refused}");
    assert!(!world.one::<bool>("select exists (select from catchword.collection where name = 'note')").await, "nothing is half done");

    world.sql(&format!("alter role {migrator} bypassrls")).await;
    migrate(&roles).await.unwrap();
    let worker = connect(&roles, "worker").await.unwrap();
    as_tenant(&roles, "red", "insert into note values (1, 'red', 1, 'hello')").await;
    as_tenant(&roles, "blue", "insert into note values (2, 'blue', 1, 'hello')").await;
    worker.drain("test", &["note"]).await.unwrap();
    as_tenant(&roles, "red", "truncate note").await;
    worker.drain("test", &["note"]).await.unwrap();
    world.sides_agree("note").await;
    assert_eq!(world.found("note").await.len(), 0, "the keys of both tenants are recorded as deleted");

    // a policy that comes to apply later stops the collection, and an audit follows when it is over
    world.sql(&format!("alter role {migrator} nobypassrls")).await;
    let refused = connect(&roles, "worker").await.err().unwrap();
    assert!(refused.contains(&format!("applies to the role {migrator}")), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_view_is_read_as_its_owner_or_as_who_asks() {
    let roles = tenants().await;
    let world = &roles.world;
    let (migrator, worker, application) = (roles.names.of("migrator"), roles.names.of("worker"), roles.names.of("application"));
    world.sql(&format!("{SECURE}; alter view note_document owner to {application}")).await;
    let refused = migrate(&roles).await.unwrap_err();
    let wanted = format!("applies to the role {application}, as which the view public.note_document reads it");
    assert!(refused.contains(&wanted), "{refused}");
    assert!(refused.contains(&format!("run \"alter view public.note_document owner to {migrator}\"")), "{refused}");
    assert!(!refused.contains("bypassrls"), "never for an application's role: {refused}");

    world.sql(&format!("alter view note_document owner to {migrator}")).await;
    // before 15 every view is read as its owner
    if world.postgres().await < 15 {
        migrate(&roles).await.unwrap();
        return;
    }
    world.sql("alter view note_document set (security_invoker = on)").await;
    migrate(&roles).await.unwrap();
    world.sql(&format!("grant select on author to {worker}; alter table note disable row level security")).await;
    let refused = connect(&roles, "worker").await.err().unwrap();
    assert!(refused.contains(&format!("row security of public.author applies to the role {worker}, as which the view")), "{refused}");
    world.sql(&format!("alter role {worker} bypassrls; {SECURE}")).await;
    let worker = connect(&roles, "worker").await.unwrap();
    as_tenant(&roles, "red", "insert into note values (1, 'red', 1, 'hello')").await;
    worker.drain("test", &["note"]).await.unwrap();
    world.sides_agree("note").await;
}

/// A table of somebody else's that the view reads too.
#[tokio::test(flavor = "multi_thread")]
async fn a_related_table_with_policies_is_judged_too() {
    let roles = tenants().await;
    let (migrator, application) = (roles.names.of("migrator"), roles.names.of("application"));
    roles
        .world
        .sql(&format!(
            "alter role {} bypassrls;
             alter table author owner to {application}; grant {application} to {migrator}; grant select, trigger on author to {migrator};
             alter table author force row level security",
            roles.names.of("worker")
        ))
        .await;
    let refused = migrate(&roles).await.unwrap_err();
    assert!(refused.contains(&format!("row security of public.author applies to the role {migrator}")), "{refused}");
    roles.world.sql("alter table author no force row level security").await;
    migrate(&roles).await.unwrap();
    let worker = connect(&roles, "worker").await.unwrap();
    as_tenant(&roles, "red", "insert into note values (1, 'red', 2, 'hello'); update author set name = 'Otto' where id = 2").await;
    worker.drain("test", &["note"]).await.unwrap();
    roles.world.sides_agree("note").await;
    assert_eq!(roles.world.source("note", "1").await.unwrap()["text"], "hello by Otto");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_under_policies_writes_under_them_and_leaves_deletes_to_the_worker() {
    let roles = tenants().await;
    roles.world.sql(&format!("{SECURE}; alter role {} bypassrls", roles.names.of("worker"))).await;
    migrate(&roles).await.unwrap();
    let service = connect(&roles, "service").await.unwrap();
    let stored = async |tenant: &str, id: i64, sql: String| {
        let store = async |tx: &mut PgConnection| {
            sqlx::raw_sql(AssertSqlSafe(format!("set local app.tenant = '{tenant}'; {sql}"))).execute(&mut *tx).await?;
            let seen: i64 = sqlx::query_scalar("select count(*) from note").fetch_one(tx).await?;
            Ok::<_, catchword::Error>(Stored::new(seen, [id]))
        };
        service.store_and_schedule("note", store).await.unwrap()
    };
    for (id, tenant) in [(1_i64, "red"), (2, "blue"), (3, "red")] {
        let kept = stored(tenant, id, format!("insert into note values ({id}, '{tenant}', 1, 'hello')")).await;
        assert_eq!(kept.value, if id == 3 { 2 } else { 1 }, "it sees the rows of its tenant");
    }
    // the view reads as its owner; the table itself is read as the service
    let kept = stored("red", 1, "delete from note".into()).await;
    let Direct::Left(why) = kept.direct else { panic!("{:?}", kept.direct) };
    assert!(why.contains("row-level security"), "{why}");
    let worker = connect(&roles, "worker").await.unwrap();
    worker.drain("test", &["note"]).await.unwrap();
    roles.world.sides_agree("note").await;
    assert_eq!(roles.world.found("note").await, ["2"]);
}
