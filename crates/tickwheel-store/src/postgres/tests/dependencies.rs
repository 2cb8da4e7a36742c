//! Jobs that wait for others, where many connections meet: every parent is counted once, and nobody pays who does not
//! depend on anybody.

use std::sync::Arc;

use tickwheel_core::change::Change;
use tickwheel_core::parents::Parents;
use tickwheel_core::ports::{Changed, Claim, ControlStore, Creation, JobStore, SettledBatch};
use tickwheel_core::settle::{DeadReason, Next, Settlement};
use tickwheel_core::{Job, JobId, State};
use tickwheel_testkit::TestDatabase;
use tickwheel_testkit::fixtures::{JobBuilder, at, job};

use super::{
    PLAN_MODES, STUCK, claimed, completed, connect, eventually, ids, number, open_session, plan_of,
    some_values, submit,
};
use crate::postgres::PostgresStore;
use crate::postgres::dependencies::{CLOSE_EDGES, STATEMENTS};
use crate::postgres::submit::Submission;

const RETRY: Change = Change::Retry { payload: None };

/// Running jobs, by id.
async fn running(store: &PostgresStore, count: usize) -> Vec<Job> {
    let session = open_session(store, 1).await;
    let mut jobs = submit(store, (0..count).map(|_| job())).await;
    jobs.sort();
    store.claim(Claim { claimed_by: None, session, jobs, now: at(0) }).await.expect("they are due")
}

fn released_ids(batch: &SettledBatch) -> Vec<JobId> {
    batch.released.iter().map(|job| job.due.id).collect()
}

fn failed(job: &Job) -> Settlement {
    Settlement { next: Next::Fail { reason: DeadReason::NotRetryable }, ..completed(job) }
}

async fn assert_stands(store: &PostgresStore, id: JobId, state: State, open: u32, failed: u32) {
    let job = store.get_job(id).await.expect("read").expect("it is there");
    assert_eq!((job.state(), job.parents), (state, Parents { open, failed }));
}

/// The settlement waits for the submission, and then sees what it brought.
#[tokio::test]
async fn a_parent_does_not_end_behind_the_back_of_a_submission() {
    let database = TestDatabase::create().await;
    let store = Arc::new(connect(&database).await);
    let parent = claimed(&store).await;
    let mut client = store.client().await.expect("a connection");
    let transaction = client.transaction().await.expect("begun");
    let mut new = [job().depends_on([parent.id]).build_new()];
    let submission = Submission::write(&store, &transaction, &mut new).await.expect("written");
    let [Creation::Created(child)] = &submission.answers[..] else { panic!("it is new") };
    assert_eq!(child.state(), State::Pending);

    let settling = Arc::clone(&store);
    let batch = tokio::spawn(async move { settling.settle(vec![completed(&parent)]).await });
    eventually("the settlement waits", async || number(&store, STUCK).await == 1).await;
    transaction.commit().await.expect("committed");
    let batch = batch.await.expect("it ends").expect("settled");
    assert_eq!(released_ids(&batch), [child.id]);
    assert_stands(&store, child.id, State::Scheduled, 0, 0).await;
}

/// The submission waits for the settlement, and then sees how it ended.
#[tokio::test]
async fn a_submission_does_not_count_on_a_parent_that_is_ending() {
    let database = TestDatabase::create().await;
    let store = Arc::new(connect(&database).await);
    let parent = claimed(&store).await;
    let ending = store.client().await.expect("a connection");
    let end = format!(
        "BEGIN; INSERT INTO finished_jobs SELECT id, execute_at, due_at, created_at, timeout_ms, 1, attempt, retries, lost, \
         partition, priority, 4, target, 0, tenant, type, queue, spec, payload, tags FROM jobs; \
         DELETE FROM jobs WHERE id = '{}'",
        parent.id
    );
    ending.batch_execute(&end).await.expect("not yet committed");

    let submitting = Arc::clone(&store);
    let new = job().depends_on([parent.id]).build_new();
    let child = new.job.id;
    let answers = tokio::spawn(async move { submitting.submit_jobs(vec![new]).await });
    eventually("the submission waits", async || number(&store, STUCK).await == 1).await;
    ending.batch_execute("COMMIT").await.expect("committed");
    answers.await.expect("it ends").expect("submitted");
    assert_stands(&store, child, State::Scheduled, 0, 0).await;
}

#[tokio::test]
async fn a_parent_is_not_retried_behind_the_back_of_a_submission() {
    let database = TestDatabase::create().await;
    let store = Arc::new(connect(&database).await);
    let parent = claimed(&store).await;
    store.settle(vec![failed(&parent)]).await.expect("settled");
    let mut client = store.client().await.expect("a connection");
    let transaction = client.transaction().await.expect("begun");
    let mut new = [job().depends_on([parent.id]).build_new()];
    let child = new[0].job.id;
    Submission::write(&store, &transaction, &mut new).await.expect("written");

    let retrying = Arc::clone(&store);
    let retried = tokio::spawn(async move { retrying.change_job(parent.id, RETRY, at(5)).await });
    eventually("the revival waits", async || number(&store, STUCK).await == 1).await;
    transaction.commit().await.expect("committed");
    let retried = retried.await.expect("it ends").expect("retried");
    assert!(matches!(retried, Changed::Done(_)), "{retried:?}");
    assert_stands(&store, child, State::Pending, 1, 0).await;
}

/// Whoever comes second to a child's row builds on what the first one made of it.
#[tokio::test]
async fn two_parents_that_end_together_release_their_child_once() {
    let database = TestDatabase::create().await;
    let store = Arc::new(connect(&database).await);
    let parents = running(&store, 2).await;
    let child = submit(&store, [job().depends_on(ids(&parents))]).await[0];
    let blocker = store.client().await.expect("a connection");
    blocker
        .batch_execute(&format!("BEGIN; SELECT FROM jobs WHERE id = '{child}' FOR UPDATE"))
        .await
        .expect("locked");

    let settle = |parent: &Job| {
        let (settling, end) = (Arc::clone(&store), completed(parent));
        tokio::spawn(async move { settling.settle(vec![end]).await })
    };
    let batches = [settle(&parents[0]), settle(&parents[1])];
    eventually("both wait for the child", async || number(&store, STUCK).await == 2).await;
    blocker.batch_execute("COMMIT").await.expect("unlocked");
    let mut released = Vec::new();
    for batch in batches {
        released.extend(released_ids(&batch.await.expect("it ends").expect("settled")));
    }
    assert_eq!(released, [child]);
    assert_stands(&store, child, State::Scheduled, 0, 0).await;
}

/// Some parents complete, some fail and are retried and complete then: in the end every child is released, once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_parents_that_end_in_many_batches_release_each_child_once() {
    const PARENTS: usize = 60;
    let database = TestDatabase::create().await;
    let store = Arc::new(connect(&database).await);
    let parents = running(&store, PARENTS).await;
    let builder = |n: usize| {
        job().depends_on([n, n + 7, n + 20, n + 33].map(|position| parents[position % PARENTS].id))
    };
    let mut children = submit(&store, (0..120).map(builder)).await;
    let mut settling = Vec::new();
    for turn in 0..6 {
        let batch: Vec<Job> = parents.iter().skip(turn).step_by(6).cloned().collect();
        settling.push(tokio::spawn(settle_all(Arc::clone(&store), turn as u64 + 2, batch)));
    }
    let mut released = Vec::new();
    for batch in settling {
        released.extend(batch.await.expect("it ends"));
    }
    released.sort();
    children.sort();
    assert_eq!(released, children);
    for child in children {
        assert_stands(&store, child, State::Scheduled, 0, 0).await;
    }
}

/// Every third one fails first.
async fn settle_all(store: Arc<PostgresStore>, session: u64, parents: Vec<Job>) -> Vec<JobId> {
    let session = open_session(&store, session).await;
    let mut released = Vec::new();
    for batch in parents.chunks(3) {
        let ends = batch.iter().enumerate().map(|(n, job)| if n == 0 { failed(job) } else { completed(job) });
        let settled = store.settle(ends.collect()).await.expect("settled");
        released.extend(released_ids(&settled));
        let retried = store.change_job(batch[0].id, RETRY, at(10)).await.expect("retried");
        assert!(matches!(retried, Changed::Done(_)), "{retried:?}");
        let claim = Claim { claimed_by: None, session, jobs: vec![batch[0].id], now: at(20) };
        let again = store.claim(claim).await.expect("it is due");
        let settled = store.settle(again.iter().map(completed).collect()).await.expect("settled");
        released.extend(released_ids(&settled));
    }
    released
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_submitted_while_its_parent_ends_never_waits_for_ever() {
    const ROUNDS: usize = 300;
    let database = TestDatabase::create().await;
    let store = Arc::new(connect(&database).await);
    let mut by_settlement = 0;
    for (round, parent) in running(&store, ROUNDS).await.into_iter().enumerate() {
        let new = job().depends_on([parent.id]).build_new();
        let child = new.job.id;
        let submitting = Arc::clone(&store);
        let submitted = tokio::spawn(async move { submitting.submit_jobs(vec![new]).await });
        // The settlement is one round trip, the submission is several: now the one gets ahead, now the other.
        for _ in 0..round % 6 {
            store.ping().await.expect("answered");
        }
        let batch = store.settle(vec![completed(&parent)]).await.expect("settled");
        let submitted = submitted.await.expect("it ends").expect("submitted");
        let [Creation::Created(dependent)] = &submitted[..] else { panic!("it is new") };
        match dependent.state() {
            State::Scheduled => assert_eq!(released_ids(&batch), []),
            _ => assert_eq!(released_ids(&batch), [child]),
        }
        by_settlement += batch.released.len();
        assert_stands(&store, child, State::Scheduled, 0, 0).await;
    }
    assert!(0 < by_settlement && by_settlement < ROUNDS, "{by_settlement}: the two never met");
}

/// The one lookup a batch: without edges nothing is looked at, however many jobs end.
#[tokio::test]
async fn where_nobody_depends_on_anybody_a_settlement_looks_at_no_edge() {
    let database = TestDatabase::create().await;
    let store = connect(&database).await;
    let ended = claimed(&store).await;
    store.settle(vec![completed(&ended)]).await.expect("settled");
    let client = store.client().await.expect("a connection");
    let ids = format!("ARRAY['{}'::uuid], ARRAY[1::smallint]", ended.id);
    let options = "ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF";
    let looked = |plan: &str| {
        let mut lines = plan.lines().filter(|line| line.contains("Scan"));
        let edges = lines.find(|line| line.contains(" on dependencies d ")).expect("it is in the plan");
        !edges.contains("(never executed)")
    };
    let plan = plan_of(&client, PLAN_MODES[1], options, CLOSE_EDGES, &ids).await;
    assert!(plan.contains("One-Time Filter"), "{plan}");
    assert!(!looked(&plan), "{plan}");
    let edge = format!("INSERT INTO dependencies VALUES ('{0}', '{0}', 0)", ended.id);
    client.batch_execute(&edge).await.expect("an edge");
    let plan = plan_of(&client, PLAN_MODES[1], options, CLOSE_EDGES, &ids).await;
    assert!(looked(&plan), "{plan}");
}

/// Dead rows that cannot be removed make a table look empty to the planner, and slow to whoever walks it.
#[tokio::test]
async fn edges_and_children_are_looked_up_where_dead_rows_cannot_be_removed() {
    let database = TestDatabase::create().await;
    let store = connect(&database).await;
    let parent = submit(&store, [job()]).await[0];
    let children = (0..20_000).map(|_| job().depends_on([parent])).map(JobBuilder::build_new).collect();
    store.submit_jobs(children).await.expect("stored");
    let reader = store.client().await.expect("a connection");
    reader.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1").await.expect("a snapshot");
    let client = store.client().await.expect("another connection");
    client.batch_execute("DELETE FROM jobs; DELETE FROM dependencies").await.expect("all are dead");
    client.batch_execute("VACUUM ANALYZE jobs, dependencies, finished_jobs").await.expect("and stay");

    let asked = STATEMENTS.iter().filter(|sql| !sql.starts_with("INSERT"));
    for (sql, mode) in asked.flat_map(|sql| PLAN_MODES.map(|mode| (sql, mode))) {
        let plan = plan_of(&client, mode, "COSTS OFF", sql, &some_values(sql)).await;
        for walked in ["Seq Scan on jobs", "Seq Scan on dependencies", "Join Filter"] {
            assert!(!plan.contains(walked), "{plan}");
        }
        if sql.contains("UPDATE dependencies") {
            assert!(plan.contains("Index Scan using dependencies_pkey"), "{plan}");
            assert!(plan.contains("Index Cond: (parent = "), "{plan}");
            assert!(
                plan.contains("Index Cond: (id = ANY (ARRAY["),
                "children are locked by their ids: {plan}"
            );
        } else if sql.contains("UPDATE jobs") {
            assert!(plan.contains("Index Cond: (id = ANY (ARRAY["), "{plan}");
        } else if sql.contains("FOR KEY SHARE") {
            assert!(plan.contains("jobs_pkey"), "{plan}");
        }
    }
}
