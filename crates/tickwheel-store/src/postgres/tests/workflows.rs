//! Runs of workflows, where many connections meet: every end is counted once, nobody pays who has no workflows, and all
//! is looked up.

use std::collections::BTreeSet;
use std::sync::Arc;

use tickwheel_core::parents::Release;
use tickwheel_core::ports::{Claim, JobStore, RunAdvanced, RunQuery, RunStart, RunStore};
use tickwheel_core::workflow::{ReconcileRequest, RunStatus, RunStep, TaskChange};
use tickwheel_core::{Job, JobId, RunId, State};
use tickwheel_testkit::TestDatabase;
use tickwheel_testkit::fixtures::{RunBuilder, at, run, waiting_by_edges};

use super::{
    PLAN_MODES, STUCK, claimed, completed, connect, eventually, number, open_session, plan_of, some_values,
};
use crate::postgres::{PostgresStore, restore, workflows};

async fn start(store: &PostgresStore, builder: RunBuilder) -> RunStart {
    let start = builder.build();
    store.start_run(start.clone()).await.expect("started");
    start
}

/// The tasks that can run, running.
async fn running(store: &PostgresStore, start: &RunStart) -> Vec<Job> {
    let session = open_session(store, 1).await;
    let jobs = start.jobs.iter().filter(|job| job.state() == State::Scheduled).map(|job| job.id).collect();
    store.claim(Claim { claimed_by: None, session, jobs, now: at(0) }).await.expect("they are due")
}

async fn requested_ids(store: &PostgresStore) -> BTreeSet<JobId> {
    store.reconcile_requests(None, 1_000).await.expect("read").into_iter().map(|request| request.id).collect()
}

async fn open(store: &PostgresStore, id: RunId) -> u32 {
    store.get_runs(vec![id]).await.expect("read")[0].open
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_that_end_the_parents_of_one_task_together_make_one_request() {
    const PARENTS: usize = 40;
    let database = TestDatabase::create().await;
    let store = Arc::new(connect(&database).await);
    let builder = (0..PARENTS).fold(run(), |builder, _| builder.task([]));
    let parents: [u32; PARENTS] = std::array::from_fn(|n| n as u32 + 1);
    let builder = builder.reconciled(parents).with(|run| run.progress.blocked = 1);
    let start = start(&store, builder).await;
    let ends: Vec<_> = running(&store, &start).await.iter().map(completed).collect();
    let mut settling = Vec::new();
    for batch in ends.chunks(4).map(<[_]>::to_vec) {
        let store = Arc::clone(&store);
        settling.push(tokio::spawn(async move { store.settle(batch).await }));
    }
    let mut reconcile_requests = 0;
    for batch in settling {
        reconcile_requests +=
            usize::from(batch.await.expect("it ends").expect("settled").reconcile_requested);
    }
    assert_eq!(reconcile_requests, 1, "the last of them sees that nothing but a blocked job is open");
    assert_eq!(open(&store, start.run.id).await, 1);
    let child = JobId::of_task(start.run.id, PARENTS as u32 + 1);
    assert_eq!(
        requested_ids(&store).await,
        BTreeSet::from([child, ReconcileRequest::id_of_run(start.run.id)])
    );
}

/// The step waits for the settlement, and then counts on what that left.
#[tokio::test]
async fn a_step_and_a_settlement_meet_at_the_run() {
    let database = TestDatabase::create().await;
    let store = Arc::new(connect(&database).await);
    let start = start(&store, run().task([]).reconciled([])).await;
    let running = running(&store, &start).await;
    let blocker = store.client().await.expect("a connection");
    let lock = format!("BEGIN; SELECT FROM workflow_runs WHERE id = '{}' FOR UPDATE", start.run.id);
    blocker.batch_execute(&lock).await.expect("locked");

    let (settling, stepping) = (Arc::clone(&store), Arc::clone(&store));
    let end = completed(&running[0]);
    let settled = tokio::spawn(async move { settling.settle(vec![end]).await });
    let change = TaskChange::End { state: State::Completed, result: None, error: None };
    let changes = vec![(JobId::of_task(start.run.id, 2), change)];
    let step = RunStep { changes, ..RunStep::nothing(&start.run, at(5)) };
    let stepped = tokio::spawn(async move { stepping.advance_runs(vec![step]).await });
    eventually("both wait for the run", async || number(&store, STUCK).await == 2).await;
    blocker.batch_execute("COMMIT").await.expect("unlocked");
    settled.await.expect("it ends").expect("settled");
    let stepped = stepped.await.expect("it ends").expect("carried out");
    assert!(matches!(stepped[..], [RunAdvanced::Done(_)]), "{stepped:?}");
    assert_eq!(open(&store, start.run.id).await, 0);
    assert!(requested_ids(&store).await.contains(&ReconcileRequest::id_of_run(start.run.id)));
}

/// They are locked against everybody, and it is not noticed.
#[tokio::test]
async fn a_batch_without_tasks_looks_at_no_run() {
    let database = TestDatabase::create().await;
    let store = connect(&database).await;
    let job = claimed(&store).await;
    let blocker = store.client().await.expect("a connection");
    let lock = "BEGIN; LOCK TABLE workflow_runs, reconcile_requests, workflows IN ACCESS EXCLUSIVE MODE";
    blocker.batch_execute(lock).await.expect("locked");
    let batch = store.settle(vec![completed(&job)]).await.expect("settled");
    assert!(!batch.reconcile_requested);
}

/// Runs that were begun before positions knew the adjacent tasks go on by their edges.
#[tokio::test]
async fn tasks_that_wait_by_edges_are_released_and_requested() {
    let database = TestDatabase::create().await;
    let store = connect(&database).await;
    let (with_edges, edges) = waiting_by_edges(run().task([]).task([1]).reconciled([1]).build());
    store.start_run(with_edges.clone()).await.expect("started");
    let client = store.client().await.expect("a connection");
    for (parent, child) in edges {
        let edge = format!("INSERT INTO dependencies VALUES ('{parent}', '{child}', 0)");
        client.batch_execute(&edge).await.expect("an edge");
    }
    let ended = running(&store, &with_edges).await;
    let batch = store.settle(vec![completed(&ended[0])]).await.expect("settled");
    let released: Vec<JobId> = batch.released.iter().map(|job| job.due.id).collect();
    assert_eq!((released, batch.reconcile_requested), (vec![with_edges.jobs[1].id], true));
    assert_eq!(requested_ids(&store).await, BTreeSet::from([with_edges.jobs[2].id]));
    assert_eq!(open(&store, with_edges.run.id).await, 2);
}

/// It takes its connection along: nobody finds one with a transaction open, and nothing of it is done.
#[tokio::test]
async fn a_settlement_that_is_given_up_halfway_leaves_nothing_behind() {
    let database = TestDatabase::create().await;
    let store = Arc::new(connect(&database).await);
    let start = start(&store, run().task([]).task([1])).await;
    let ended = completed(&running(&store, &start).await[0]);
    let blocker = store.client().await.expect("a connection");
    let lock = format!("BEGIN; SELECT FROM workflow_runs WHERE id = '{}' FOR UPDATE", start.run.id);
    blocker.batch_execute(&lock).await.expect("locked");
    let (settling, end) = (Arc::clone(&store), ended.clone());
    let settled = tokio::spawn(async move { settling.settle(vec![end]).await });
    eventually("it waits for the run", async || number(&store, STUCK).await == 1).await;
    settled.abort();
    assert!(settled.await.expect_err("given up").is_cancelled());
    blocker.batch_execute("COMMIT").await.expect("unlocked");
    let open_ones = "SELECT count(*) FROM pg_stat_activity \
                     WHERE datname = current_database() AND xact_start IS NOT NULL AND pid <> pg_backend_pid()";
    eventually("its transaction ends", async || number(&store, open_ones).await == 0).await;
    assert_eq!(number(&store, "SELECT count(*) FROM finished_jobs").await, 0);
    let batch = store.settle(vec![ended]).await.expect("settled");
    assert_eq!(batch.released.len(), 1);
}

#[tokio::test]
async fn counting_an_end_touches_no_index_of_the_run() {
    let database = TestDatabase::create().await;
    let store = connect(&database).await;
    let start = start(&store, (0..10).fold(run(), |builder, _| builder.task([]))).await;
    for job in running(&store, &start).await {
        store.settle(vec![completed(&job)]).await.expect("settled");
    }
    store.read("SELECT pg_stat_force_next_flush()", &[]).await.expect("asked");
    let count = async |column: &str| {
        let sql = format!("SELECT {column} FROM pg_stat_user_tables WHERE relname = 'workflow_runs'");
        number(&store, &sql).await
    };
    eventually("the ends show in the statistics", async || count("n_tup_upd").await == 10).await;
    assert_eq!(count("n_tup_hot_upd").await, 10);
}

#[tokio::test]
async fn a_list_of_runs_that_hits_the_bound_is_short_and_the_next_goes_on() {
    let database = TestDatabase::create().await;
    let store = connect(&database).await;
    let mut rare = Vec::new();
    for count in 0..30 {
        let status = if count % 10 == 0 { RunStatus::Failed } else { RunStatus::Running };
        let id = start(&store, run().task([]).with(|run| run.progress.status = status)).await.run.id;
        rare.extend((status == RunStatus::Failed).then_some(id));
    }
    rare.reverse();
    for workflow in [None, Some("etl".to_owned())] {
        let (tenant, status) = ("default".to_owned(), Some(RunStatus::Failed));
        let mut query = RunQuery { tenant, workflow, status, after: None, limit: 2 };
        let (mut found, mut pages) = (Vec::new(), 0);
        loop {
            let page = workflows::list_runs(&store, &query, 4).await.expect("a page");
            found.extend(page.items.iter().map(|run| run.id));
            pages += 1;
            match page.next {
                None => break,
                next => query.after = next,
            }
        }
        assert_eq!(found, rare);
        assert!(pages > 5, "three runs would fit in two pages: the bound was not in force");
    }
}

/// Dead rows that cannot be removed make a table look empty to the planner, and slow to whoever walks it.
#[tokio::test]
async fn runs_tasks_and_requests_are_looked_up_where_dead_rows_cannot_be_removed() {
    let database = TestDatabase::create().await;
    let store = connect(&database).await;
    for _ in 0..20 {
        start(&store, (0..500).fold(run().reconciled([]), |builder, _| builder.reconciled([1]))).await;
    }
    let reader = store.client().await.expect("a connection");
    reader.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1").await.expect("a snapshot");
    let client = store.client().await.expect("another connection");
    client.batch_execute(KEPT).await.expect("what is kept");
    let tables = ["jobs", "dependencies", "reconcile_requests", "workflow_runs", "finished_jobs"];
    client
        .batch_execute("DELETE FROM jobs; DELETE FROM dependencies; DELETE FROM reconcile_requests")
        .await
        .expect("dead");
    client.batch_execute(&format!("VACUUM ANALYZE {}", tables.join(", "))).await.expect("and they stay");
    let asked = workflows::STATEMENTS.iter().copied().chain([restore::STATEMENTS]).flatten();
    for (sql, mode) in asked.flat_map(|sql| PLAN_MODES.map(|mode| (sql, mode))) {
        let plan = plan_of(&client, mode, "COSTS OFF", sql, &some_values(sql)).await;
        for table in tables {
            assert!(!plan.contains(&format!("Seq Scan on {table}")), "{plan}\n{sql}");
        }
        for walked in ["Join Filter", "jobs_due", "finished_jobs_type"] {
            assert!(!plan.contains(walked), "{plan}\n{sql}");
        }
        let is_list_of_one = sql.contains("workflow = $");
        assert!(is_list_of_one || !plan.contains("workflow_runs_workflow"), "{plan}\n{sql}");
    }
}

/// Runs and finished jobs are not removed: there are many.
const KEPT: &str = "\
INSERT INTO workflow_runs (id, revision, created_at, version, next_index, blocked, stalled, total, open, partition, status,
                           cancel_requested, tenant, workflow, input, idempotency_key)
SELECT gen_random_uuid(), 1, 0, 1, 1, 0, 0, 1, 1, 0, 0, false, 'default', 'etl', '{}', n::text
FROM generate_series(1, 5000) AS n;
INSERT INTO finished_jobs (id, execute_at, due_at, created_at, timeout_ms, completed_at, attempt, retries, lost, partition,
                           priority, state, target, tenant, type, queue, spec, payload, tags)
SELECT gen_random_uuid(), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 'default', 'etl.task', 'default', '{}', '{}', '[]'
FROM generate_series(1, 10000)";

#[test]
fn the_numbers_in_the_statements_are_those_of_the_core() {
    assert_eq!(Release::ALL.map(Release::code), [0, 1, 2, 3, 4, 5]);
    assert_eq!(Release::ALL[1..4], [Release::Task, Release::Reconciled, Release::Watched]);
    assert_eq!(Release::ALL[4..], [Release::Joined, Release::Paced]);
    assert_eq!((RunStatus::Running.code(), State::Completed.code()), (0, 4));
}
