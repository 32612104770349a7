//! What operators do to a reindex: cancel, pause, resume. Nothing that the index needs is lost by it.

use catchword::reindex::State;

use super::with_numbers;
use crate::common::World;
use crate::operate::roles::Roles;

impl World {
    async fn journal(&self) -> Vec<String> {
        self.all("select concat_ws(' | ', what, collection, detail, count) from catchword.journal order by id").await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_its_jobs_go_and_those_of_others_for_the_same_keys_stay() {
    let world = World::with(with_numbers(12_000)).await;
    world.sql("select catchword.schedule('number', '{1,2,3}')").await;
    let other = world.started(&["number", "--ids", "5,6"]).await;
    let id = world.started(&["number", "--all", "--yes"]).await;
    let (code, said, errors) = world.run(&["reindex", "cancel", &id.to_string()]).await;
    assert_eq!((code, said.as_str()), (0, &*format!("reindex {id} is cancelled; 10000 jobs were deleted\n")), "{errors}");
    assert_eq!(world.walk("number").await, ["1", "2", "3", "5", "6"]);
    let now = world.progress(id).await;
    assert_eq!((now.state, now.scheduled, now.settled, now.taken_off), (State::Cancelled, 10_000, 0, 10_000), "deleted is not settled");
    assert!(now.ended_at.is_some());
    assert_eq!(world.fed("number").await, 0, "no more is scheduled");
    assert_eq!(world.progress(other).await.open, 2);
    assert_eq!(world.journal().await.last().unwrap(), &format!("cancel | number | reindex {id}: everything | 10000"));
    let (code, said, _) = world.run(&["reindex", "cancel", &id.to_string()]).await;
    assert_eq!((code, said.as_str()), (1, &*format!("reindex {id} was over already\n")));
    let (code, _, said) = world.run(&["reindex", "cancel", "999"]).await;
    assert!(code == 2 && said.contains("there is no reindex 999; see: catchword reindex list"), "{said}");
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_that_a_batch_holds_go_when_it_is_through() {
    let world = World::with(with_numbers(100)).await;
    let id = world.started(&["number", "--all", "--yes"]).await;
    #[allow(clippy::disallowed_methods)]
    let mut batch = world.pool.begin().await.unwrap();
    let held = catchword::job::claim(&mut batch, "number", catchword::job::Cursor::TOP, 30).await.unwrap();
    assert_eq!(held.len(), 30);
    let (code, said, _) = world.run(&["reindex", "cancel", &id.to_string()]).await;
    assert!(code == 0 && said.contains("70 jobs were deleted, and 30 stay: they are worked on now"), "{said}");
    // of the thirty, ten are settled and the rest left
    let settled: Vec<i64> = held[..10].iter().map(|job| job.id).collect();
    sqlx::query("delete from catchword.job where id = any($1)").bind(settled).execute(&mut *batch).await.unwrap();
    batch.commit().await.unwrap();
    assert_eq!(world.progress(id).await.open, 20);
    world.sql("update catchword.reindex set next_at = now()").await;
    world.fed("number").await;
    let now = world.progress(id).await;
    assert_eq!((now.state, now.open, now.settled, now.taken_off), (State::Cancelled, 0, 10, 90));
    assert!(now.ended_at.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rewrite_that_is_cancelled_keeps_the_jobs_of_rows_that_drew_a_number() {
    let world = World::new().await;
    world.write_down("acct:a", 4_000).await;
    world.reindexed(&["annotation", "--user", "acct:a"]).await;
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    let id = world.started(&["annotation", "--user", "acct:a", "--rewrite"]).await;
    let (code, said, _) = world.run(&["reindex", "cancel", &id.to_string()]).await;
    assert_eq!(code, 0);
    assert!(said.contains("its 2500 open jobs stay, because their rows have new numbers, which the index must get"), "{said}");
    assert_eq!(world.jobs().await, 2_500);
    world.intent_is_durable().await;
    assert_eq!(world.fed("annotation").await, 0);
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    let now = world.progress(id).await;
    assert_eq!((now.state, now.settled, now.open), (State::Cancelled, 2_500, 0));
    world.settle_and_compare().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_rewrites_everything_is_not_cancelled_unless_another_one_does_it() {
    let world = World::new().await;
    world.write_down("acct:a", 12_000).await;
    let id = world.started(&["annotation", "--all", "--rewrite", "--yes"]).await;
    let (code, _, said) = world.run(&["reindex", "cancel", &id.to_string()]).await;
    assert_eq!(code, 2);
    assert!(
        said.contains("since it began, every document counts as old") && said.contains(&format!("catchword reindex pause {id}")),
        "{said}"
    );
    assert_eq!(world.progress(id).await.state, State::Running);
    let again = world.started(&["annotation", "--all", "--rewrite", "--yes"]).await;
    assert_eq!(world.run(&["reindex", "cancel", &id.to_string()]).await.0, 0);
    assert_eq!(world.run(&["reindex", "cancel", &again.to_string()]).await.0, 2);
}

/// The index was ahead, so that a key drew a number; or a document was refused: its job is charged, and knows more than the reindex did.
#[tokio::test(flavor = "multi_thread")]
async fn jobs_that_were_worked_on_and_are_needed_now_stay_when_their_reindex_is_cancelled() {
    let world = World::with(with_numbers(10)).await;
    let id = world.started(&["number", "--all", "--yes"]).await;
    world
        .sql("select catchword.draw('number', '{3}'); update catchword.job set attempts = 1 where key = '4' and collection = 'number'")
        .await;
    let (code, said, _) = world.run(&["reindex", "cancel", &id.to_string()]).await;
    assert!(code == 0 && said.contains("8 jobs were deleted, and 2 stay"), "{said}");
    assert_eq!(world.walk("number").await, ["3", "4"]);
    assert!(world.progress(id).await.ended_at.is_some(), "nothing more is done to it");
    world.catchword.drain("test", &["number"]).await.unwrap();
    let now = world.progress(id).await;
    assert_eq!((now.state, now.settled, now.taken_off, now.open), (State::Cancelled, 2, 8, 0));
}

/// A dead letter is all that is left of the jobs of its key, also of a write's.
#[tokio::test(flavor = "multi_thread")]
async fn what_came_back_from_a_dead_letter_stays_when_its_reindex_is_cancelled() {
    let world = World::new().await;
    let key = world.annotate("acct:a", "written, and refused").await;
    world.annotate("acct:a", "another").await;
    let id = world.started(&["annotation", "--user", "acct:a"]).await;
    assert_eq!(world.one::<i64>(&format!("select catchword.bury('annotation', '{key}')")).await, 2);
    let now = world.progress(id).await;
    assert_eq!((now.open, now.dead, now.settled), (1, 1, 0));
    world.sql("select catchword.replay(null, 'annotation', null, null, null, null, 'me', 'all')").await;
    let now = world.progress(id).await;
    assert_eq!((now.open, now.dead, now.settled), (2, 0, 0), "it is open again");
    assert_eq!(world.run(&["reindex", "cancel", &id.to_string()]).await.0, 0);
    world.intent_is_durable().await;
    assert_eq!(world.one::<i64>(&format!("select count(*) from catchword.job where key = '{key}'")).await, 1);
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    world.settle_and_compare().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn paused_nothing_more_is_scheduled_until_it_is_resumed() {
    let world = World::with(with_numbers(12_000)).await;
    let id = world.started(&["number", "--all", "--yes"]).await;
    let number = id.to_string();
    let (code, said, _) = world.run(&["reindex", "pause", &number]).await;
    assert!(code == 0 && said.contains("is paused; its 10000 open jobs are still worked on"), "{said}");
    assert_eq!(world.fed("number").await, 0);
    assert_eq!(world.progress(id).await.state, State::Paused);
    assert_eq!(world.run(&["reindex", "pause", &number]).await.0, 1);
    assert_eq!(world.run(&["reindex", "resume", &number]).await.0, 0);
    assert_eq!(world.run(&["reindex", "resume", &number]).await.0, 1);
    assert_eq!(world.fed("number").await, 2_000);
    let (code, said, _) = world.run(&["reindex", "pause", &number]).await;
    assert!(code == 1 && said.contains("there is nothing to pause; 12000 jobs are open"), "{said}");
    let told = world.journal().await;
    assert!(told.contains(&format!("pause | number | reindex {id}: everything")), "{told:?}");
    assert!(told.contains(&format!("resume | number | reindex {id}: everything")), "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_may_and_a_worker_may_only_look() {
    let roles = Roles::new().await;
    roles.world.sql("insert into annotation (userid, target_uri, target_uri_normalized) values ('acct:a', 'u', 'u')").await;
    let run = async |role: &str, words: &[&str]| {
        let output = roles.world.binary().env("DATABASE_URL", roles.url(role)).args(words).output().await.unwrap();
        (output.status.code().unwrap(), String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr))
    };
    let (code, said) = run("worker", &["reindex", "annotation", "--user", "acct:a", "--rate", "5"]).await;
    assert_eq!(code, 0, "{said}");
    let id: i64 = roles.world.one("select max(id) from catchword.reindex").await;
    let number = id.to_string();
    for words in [&["reindex", "list"][..], &["reindex", "show", &number]] {
        let (code, said) = run("worker", words).await;
        assert!(code == 0 && said.contains("user acct:a"), "{said}");
    }
    for (words, function) in [
        (&["reindex", "pause", &number][..], "pause_reindex"),
        (&["reindex", "resume", &number], "resume_reindex"),
        (&["reindex", "rate", &number, "9"], "set_reindex_rate"),
        (&["reindex", "cancel", &number], "cancel_reindex"),
    ] {
        let (code, said) = run("worker", words).await;
        assert!(code == 2 && said.contains(&format!("permission denied for function {function}")), "{said}");
        let (code, said) = run("operator", words).await;
        assert_eq!(code, 0, "{words:?}: {said}");
    }
    let who: Vec<String> = roles.world.all("select who from catchword.journal where what in ('pause', 'resume', 'rate', 'cancel')").await;
    assert!(who.len() == 4 && who.iter().all(|who| who.starts_with(&roles.names.of("operator"))), "{who:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_cancels_the_reindex_of_somebody_else_leaves_both_names() {
    let world = World::with(with_numbers(12_000)).await;
    let id: i64 = world.one("select catchword.reindex_start('number', p_who => 'mina')").await;
    assert!(world.one::<bool>(&format!("select catchword.cancel_reindex({id}, 'otto')")).await);
    let last = "select who || ' | ' || detail from catchword.journal order by id desc limit 1";
    assert_eq!(world.one::<String>(last).await, format!("postgres(otto) | reindex {id}: everything, begun by postgres(mina)"));
}
