//! A managed service: nobody is a superuser, and some things may not be seen.

use crate::common::{Layout, World, eventually, launch};
use crate::operate::roles::{INSERT, Names, ROLES, Roles, run};

/// The most powerful role that such a service hands out: it makes roles and databases, owns the database, and that is all. It runs the
/// script of the rights and the migrations, and made the tables.
async fn managed(layout: Layout) -> Roles {
    let roles = Roles { world: World::with(Layout { migrated: false, ..layout }).await, names: Names::new() };
    let master = roles.names.of("migrator");
    let database: String = roles.world.one("select current_database()::text").await;
    roles
        .world
        .sql(&format!(
            "create role {master} login createrole createdb password 'secret of migrator';
             alter database {database} owner to {master};
             revoke all on function pg_control_system() from public"
        ))
        .await;
    for relation in ["annotation", "document", "bystander", "annotation_document", "bystander_document"] {
        roles.world.sql(&format!("alter table {relation} owner to {master}")).await;
    }
    roles.grant_as(&roles.url("migrator"), &ROLES).await;
    let master = roles.pool("migrator").await;
    for role in &ROLES[1..] {
        run(&master, &format!("alter role {} password 'secret of {role}'", roles.names.of(role))).await.unwrap();
    }
    let application = roles.names.of("application");
    run(&master, &format!("grant select, insert, update, delete, truncate on annotation, document, bystander to {application}"))
        .await
        .unwrap();
    master.close().await;
    roles
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_rights_of_a_managed_service_everything_works_and_what_cannot_be_seen_is_told_once() {
    let roles = managed(Layout { tick: "* * * * * *", quick: "25ms", canary: true, ..Layout::default() }).await;
    let world = &roles.world;
    let powerful = format!(
        "select count(*) from pg_roles where rolname like '{}' and (rolsuper or rolreplication or rolbypassrls)",
        roles.names.of("%")
    );
    assert_eq!(world.one::<i64>(&powerful).await, 0);
    let command = async |role: &str, words: &[&str]| {
        let output = world.binary().env("DATABASE_URL", roles.url(role)).args(words).output().await.unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        assert!(!said.contains("permission denied"), "{role} {words:?}: {said}");
        (output.status.code().unwrap(), said)
    };
    for _ in 0..2 {
        let (code, said) = command("migrator", &["migrate"]).await;
        assert_eq!(code, 0, "{said}");
    }
    roles.grant_as(&roles.url("migrator"), &ROLES).await;

    let mut worker = launch(world.binary().env("DATABASE_URL", roles.url("worker"))).await;
    let application = roles.pool("application").await;
    run(&application, "insert into document (web_uri, title) values ('x/', 'first')").await.unwrap();
    for sql in [
        INSERT,
        "update document set title = 'second'",
        "delete from annotation where id = (select min(id::text)::uuid from annotation)",
        INSERT,
    ] {
        run(&application, sql).await.unwrap();
    }
    let settled = async || world.one::<i64>("select count(*) from catchword.job where collection = 'annotation'").await == 0;
    eventually("everything is settled", settled).await;
    assert_eq!(world.found("annotation").await.len(), 5);

    // a day: what operators and upkeep do
    for (role, words) in [
        ("worker", &["status"][..]),
        ("worker", &["reindex", "annotation", "--all", "--rewrite", "--yes"]),
        ("worker", &["sync", "--drain"]),
        ("worker", &["audit", "annotation", "--content"]),
        ("worker", &["rebuild", "annotation", "--keep", "0s", "--yes"]),
        ("worker", &["journal"]),
        ("operator", &["pause", "annotation", "--reason", "trial"]),
        ("operator", &["resume", "annotation"]),
    ] {
        let (code, said) = command(role, words).await;
        assert!(code < 2, "{role} {words:?}: {said}");
    }
    eventually("everything is settled", settled).await;
    let (code, said) = command("worker", &["check"]).await;
    assert!(code < 2, "{said}");
    for role in ["worker", "migrator"] {
        let (code, said) = command(role, &["doctor"]).await;
        assert_eq!(code, 0, "{role}: {said}");
        for unseen in ["sessions seen", "server seen"] {
            assert_eq!(said.lines().filter(|line| line.contains(unseen)).count(), 1, "{role}: {said}");
        }
    }
    let noted = "select system_identifier is null and timeline is not null and seen_at is not null from catchword.installation";
    assert!(world.one::<bool>(noted).await, "its timeline still shows a failover");
    worker.signal("-TERM").await;
    assert!(worker.child.wait().await.unwrap().success());
    let wrong: Vec<String> = worker.lines().into_iter().filter(|line| line.contains("\"ERROR\"") || line.contains("\"WARN\"")).collect();
    assert_eq!(wrong, Vec::<String>::new());
    assert_eq!(worker.lines().iter().filter(|line| line.contains("this role may not see")).count(), 1, "{:#?}", worker.lines());
    let (code, said) = command("migrator", &["detach", "annotation", "--yes"]).await;
    assert_eq!(code, 0, "{said}");
}
