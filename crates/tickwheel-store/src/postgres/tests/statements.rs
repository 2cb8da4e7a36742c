//! The statements themselves: that the server understands them, that their numbers are the right ones, that they stay
//! cheap.

use tickwheel_core::parents::NOT_UNTIL_RELEASED;
use tickwheel_core::ports::{Claim, JobStore, NewJob, StoreError};
use tickwheel_core::schedule::FireOutcome;
use tickwheel_core::settle::{Next, Settlement};
use tickwheel_core::{Failure, Priority, State};
use tickwheel_testkit::TestDatabase;
use tickwheel_testkit::fixtures::{at, job as another_job};

use super::{
    PLAN_MODES, claimed, completed, connect, eventually, number, open_session, plan_of, some_values, submit,
};
use crate::postgres::walk::WALKS;
use crate::postgres::{
    PostgresOptions, PostgresStore, attempt_logs, callbacks, claim, controls, dependencies, jobs, lists,
    once, progress, restore, schedules, session_connection, sessions, settle, submit as submission, vacuum,
    workers, workflows,
};

#[tokio::test]
async fn the_server_understands_every_statement() {
    let database = TestDatabase::create().await;
    let client = connect(&database).await.client().await.expect("a connection");
    let verbs = [
        submission::STATEMENTS,
        claim::STATEMENTS,
        settle::STATEMENTS,
        dependencies::STATEMENTS,
        sessions::STATEMENTS,
        workers::STATEMENTS,
        session_connection::STATEMENTS,
        jobs::STATEMENTS,
        restore::STATEMENTS,
        lists::STATEMENTS,
        callbacks::STATEMENTS,
        attempt_logs::STATEMENTS,
        progress::STATEMENTS,
        once::STATEMENTS,
        controls::STATEMENTS,
        vacuum::STATEMENTS,
    ];
    let verbs = verbs.into_iter().chain(schedules::STATEMENTS.iter().copied());
    let verbs = verbs.chain(workflows::STATEMENTS.iter().copied());
    let walks = WALKS.iter().flat_map(|walk| [walk.page, walk.bound]);
    for sql in verbs.flatten().copied().chain(walks) {
        client.prepare(sql).await.unwrap_or_else(|error| panic!("{error:?} in\n{sql}"));
    }
}

#[test]
fn the_numbers_in_the_statements_are_those_of_the_core() {
    assert_eq!((State::Scheduled.code(), State::Running.code(), State::Completed.code()), (1, 3, 4));
    assert_eq!(Priority::ALL.map(Priority::code), [0, 1, 2, 3]);
    assert_eq!(FireOutcome::Coalesced.code(), 3);
    assert_eq!(NOT_UNTIL_RELEASED.as_millis(), 9_223_372_036_854_775_807);
}

#[tokio::test]
async fn a_claim_touches_no_index() {
    let database = TestDatabase::create().await;
    let store = connect(&database).await;
    let session = open_session(&store, 1).await;
    let ids = submit(&store, (0..50).map(|_| another_job())).await;
    let claimed =
        store.claim(Claim { claimed_by: None, session, jobs: ids, now: at(0) }).await.expect("claimed");
    assert_eq!(claimed.len(), 50);

    // The server tells its statistics from time to time, and at once if asked on the connection that did the work.
    store.read("SELECT pg_stat_force_next_flush()", &[]).await.expect("asked");
    let count = async |column: &str| {
        number(&store, &format!("SELECT {column} FROM pg_stat_user_tables WHERE relname = 'jobs'")).await
    };
    eventually("the claim shows in the statistics", async || count("n_tup_upd").await == 50).await;
    assert_eq!(count("n_tup_hot_upd").await, 50, "an update that is not heap-only writes every index");
}

/// Dead rows that cannot be removed make a table look empty to the planner, and slow to whoever walks it.
#[tokio::test]
async fn claims_and_settlements_look_jobs_up_where_dead_rows_cannot_be_removed() {
    let database = TestDatabase::create().await;
    let store = connect(&database).await;
    submit(&store, (0..20_000).map(|_| another_job())).await;
    let reader = store.client().await.expect("a connection");
    reader.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1").await.expect("a snapshot");
    let client = store.client().await.expect("another connection");
    client.batch_execute("DELETE FROM jobs").await.expect("all are dead");
    client.batch_execute("VACUUM ANALYZE jobs").await.expect("and stay");
    let id = "'00000000-0000-0000-0000-000000000001'::uuid";
    let ids = format!("array_fill({id}, ARRAY[500])");
    let settlements = settle::STATEMENTS.iter().filter(|sql| sql.contains("unnest")).map(|sql| {
        let others =
            (2..=12).filter(|n| sql.contains(&format!("${n}::"))).map(|_| ", NULL").collect::<String>();
        (sql, format!("{ids}{others}"))
    });
    let claims = claim::STATEMENTS.iter().filter(|sql| sql.starts_with("UPDATE"));
    let asked = settlements.chain(claims.map(|sql| (sql, format!("{ids}, {id}, 1, 1"))));
    for ((sql, values), mode) in asked.flat_map(|asked| PLAN_MODES.map(|mode| (asked.clone(), mode))) {
        let plan = plan_of(&client, mode, "COSTS ON", sql, &values).await;
        assert!(
            plan.contains("Index Scan using jobs_pkey") && plan.contains("Index Cond: (id = ANY ("),
            "{plan}"
        );
        assert!(!plan.contains("jobs_due"), "{plan}");
    }
}

/// What a plan made for an empty table would make slow is planned for its values, the rest once.
#[tokio::test]
async fn the_plans_that_cannot_go_wrong_are_kept_and_no_other() {
    let database = TestDatabase::create().await;
    let options = PostgresOptions { pool_size: 1, ..PostgresOptions::default() };
    let store = PostgresStore::connect(&database.url(), options).await.expect("connected");
    let job = claimed(&store).await;
    store.settle(vec![completed(&job)]).await.expect("settled");
    let plans = async |statement: &str| {
        let sql = format!(
            "SELECT coalesce(10 * sum(generic_plans) + sum(custom_plans), 0) FROM pg_prepared_statements \
             WHERE statement LIKE '{statement}%'"
        );
        number(&store, &format!("SELECT ({sql})::bigint")).await
    };
    assert_eq!(
        plans("INSERT INTO jobs").await,
        1,
        "the submission, with a look into history: for the values"
    );
    assert_eq!(plans("WITH ended").await, 10, "the move to history: kept");
    assert_eq!(plans("UPDATE jobs AS j").await, 10, "the claim: kept");
    assert_eq!(plans("WITH moved").await, 0, "nobody ever depended on anybody");

    let ids = submit(&store, [another_job()]).await;
    submit(&store, [another_job().depends_on([ids[0]])]).await;
    let session = open_session(&store, 2).await;
    let parents =
        store.claim(Claim { claimed_by: None, session, jobs: ids, now: at(0) }).await.expect("it is due");
    store.settle(parents.iter().map(completed).collect()).await.expect("settled");
    assert_eq!(plans("WITH moved").await, 10, "the edges: kept");
}

/// Among many that are due in a month, and many that wait for others.
#[tokio::test]
async fn what_is_due_is_found_by_its_time() {
    let database = TestDatabase::create().await;
    let store = connect(&database).await;
    submit(&store, (0..5_000).map(|_| another_job())).await;
    let client = store.client().await.expect("a connection");
    let later = "UPDATE jobs SET due_at = 2500000000; ANALYZE jobs";
    client.batch_execute(later).await.expect("they are for later");
    let walks = [claim::STATEMENTS, sessions::STATEMENTS, controls::STATEMENTS].into_iter().flatten();
    for sql in walks.filter(|sql| sql.contains("SELECT") && sql.contains("due_at < 9223372036854775807")) {
        for mode in PLAN_MODES {
            let plan = plan_of(&client, mode, "COSTS OFF", sql, &some_values(sql)).await;
            let by_index = plan.contains("jobs_due") || plan.contains("jobs_route");
            let is_sorted = plan.lines().any(|line| line.contains("Sort Key") && line.contains("due_at"));
            assert!(by_index && !is_sorted && !plan.contains("Seq Scan on jobs"), "{plan}");
            assert!(!plan.contains("Join Filter"), "each walk ends at the present: {plan}");
        }
    }
}

/// However many jobs there are, with and without a route.
#[tokio::test]
async fn whether_a_route_is_used_is_found_by_index() {
    let database = TestDatabase::create().await;
    let store = connect(&database).await;
    submit(&store, (0..5_000).map(|_| another_job())).await;
    let client = store.client().await.expect("a connection");
    client.batch_execute("ANALYZE jobs").await.expect("analyzed");
    for sql in workers::STATEMENTS.iter().filter(|sql| sql.contains("EXISTS")) {
        for mode in PLAN_MODES {
            let plan = plan_of(&client, mode, "COSTS OFF", sql, &some_values(sql)).await;
            let by_index = plan.contains("jobs_route ") && plan.contains("jobs_route_not_due");
            assert!(by_index && !plan.contains("Seq Scan on jobs"), "{plan}");
        }
    }
}

#[tokio::test]
async fn an_id_in_history_is_not_submitted_again() {
    let database = TestDatabase::create().await;
    let store = connect(&database).await;
    let job = claimed(&store).await;
    store.settle(vec![completed(&job)]).await.expect("settled");

    let repeated = NewJob { job, idempotency: None };
    let again = store.submit_jobs(vec![repeated, another_job().build_new()]).await;
    assert!(matches!(again, Err(StoreError::Aborted(_))), "{again:?}");
    assert_eq!(number(&store, "SELECT count(*) FROM jobs").await, 0, "the other one is not stored either");
}

#[tokio::test]
async fn what_a_target_said_cannot_keep_its_job_from_ending() {
    let database = TestDatabase::create().await;
    let store = connect(&database).await;
    let job = claimed(&store).await;
    let error = Some(Failure::new("http_status", "500: \0\0"));
    store.settle(vec![Settlement { error, next: Next::Cancel, ..completed(&job) }]).await.expect("settled");

    let ended = store.get_job(job.id).await.expect("read").expect("it is there");
    assert_eq!(ended.error, Some(Failure::new("http_status", "500: \u{fffd}\u{fffd}")));
}
