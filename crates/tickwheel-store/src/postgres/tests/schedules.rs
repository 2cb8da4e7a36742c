//! Schedules on PostgreSQL: jobs without one pay nothing, lists stay bounded, and whoever asks learns what became of
//! it.

use std::sync::Arc;
use std::time::Duration;

use tickwheel_core::JobId;
use tickwheel_core::ports::{
    Advanced, FireQuery, JobQuery, ScheduleCreated, ScheduleQuery, ScheduleStep, ScheduleStore, StoreError,
};
use tickwheel_core::schedule::{Fire, FireOutcome, FireReason, Schedule};
use tickwheel_testkit::TestDatabase;
use tickwheel_testkit::fixtures::{at, job, job_id, schedule};

use super::{END_STUCK, STUCK, connect, eventually, number, plan_of, submit};
use crate::postgres::lists::list_jobs;
use crate::postgres::schedules::{definition, fires};
use crate::postgres::{PostgresOptions, PostgresStore};

const BOUND: usize = 5;

async fn create(store: &PostgresStore) -> Schedule {
    let schedule = schedule("* * * * *").build();
    let created = store.create_schedule(schedule.clone()).await.expect("answered");
    assert_eq!(created, ScheduleCreated::Created);
    schedule
}

fn fire(schedule: &Schedule, minute: i64, job_id: Option<JobId>) -> Fire {
    Fire {
        schedule_id: schedule.id,
        nominal_at: at(minute * 60_000),
        last_at: at(minute * 60_000),
        count: 1,
        outcome: if job_id.is_some() { FireOutcome::Fired } else { FireOutcome::Skipped },
        reason: FireReason::OnTime,
        job_id,
        recorded_at: at(minute * 60_000),
    }
}

/// The decision to fire at that minute.
fn step(schedule: &Schedule, minute: i64) -> ScheduleStep {
    let nominal = at(minute * 60_000);
    let tail = schedule.id.as_uuid().as_u128() as u64;
    let job = schedule.job(job_id(nominal, tail), nominal, nominal, nominal);
    let fires = vec![fire(schedule, minute, Some(job.id))];
    ScheduleStep {
        id: schedule.id,
        revision: schedule.revision,
        progress: schedule.progress,
        fires,
        jobs: vec![job],
    }
}

#[tokio::test]
async fn a_job_that_no_schedule_made_is_in_no_index_of_schedules() {
    let database = TestDatabase::create().await;
    let store = connect(&database).await;
    submit(&store, (0..50).map(|_| job())).await;
    let size = "SELECT pg_relation_size('jobs_schedule')";
    let empty = number(&store, size).await;
    submit(&store, (0..50).map(|_| job())).await;
    assert_eq!(number(&store, size).await, empty);
    let made = create(&store).await;
    store.advance_schedules(vec![step(&made, 1)]).await.expect("answered");
    assert!(number(&store, size).await > empty, "an entry needs a page: nothing was measured");
}

#[tokio::test]
async fn a_ledger_is_read_in_short_pages_without_gaps() {
    let database = TestDatabase::create().await;
    let store = connect(&database).await;
    let schedule = create(&store).await;
    let skipped = (0..30).map(|minute| fire(&schedule, minute, None));
    let mut records: Vec<Fire> = skipped.collect();
    for minute in [3, 17, 29] {
        records[minute].outcome = FireOutcome::Missed;
    }
    store.change_schedule(schedule.clone(), records.clone()).await.expect("answered");

    let outcome = Some(FireOutcome::Missed);
    let mut query = FireQuery { schedule_id: schedule.id, outcome, before: None, limit: 2 };
    let (mut found, mut pages) = (Vec::new(), 0);
    loop {
        let page = fires::list_fires(&store, &query, BOUND).await.expect("a page");
        found.extend(page.items);
        pages += 1;
        match page.next {
            Some(next) => query.before = Some(next),
            None => break,
        }
    }
    assert_eq!(found, [29, 17, 3].map(|minute| records[minute].clone()));
    assert!(pages > 5, "three records would fit in two pages: the bound was not in force");
}

#[tokio::test]
async fn schedules_are_listed_in_short_pages_without_gaps() {
    let database = TestDatabase::create().await;
    let store = connect(&database).await;
    for number in 0..30 {
        let builder = schedule("@daily").name(&format!("{number:02}"));
        let builder = if number % 10 == 3 { builder.paused("for now") } else { builder };
        store.create_schedule(builder.build()).await.expect("created");
    }
    let mut query = ScheduleQuery { paused: Some(true), limit: 2, ..ScheduleQuery::default() };
    let (mut found, mut pages) = (Vec::new(), 0);
    loop {
        let page = definition::list_schedules(&store, &query, BOUND).await.expect("a page");
        found.extend(page.items.into_iter().map(|schedule| schedule.name.to_string()));
        pages += 1;
        match page.next {
            Some(next) => query.after = Some(next),
            None => break,
        }
    }
    assert_eq!(found, ["03", "13", "23"]);
    assert!(pages > 5, "three schedules would fit in two pages: the bound was not in force");
}

/// What was written by another version, or by hand, keeps one schedule from firing and no other.
#[tokio::test]
async fn a_schedule_that_cannot_be_read_does_not_keep_the_others_back() {
    let database = TestDatabase::create().await;
    let store = connect(&database).await;
    let (one, other, sound) = (create(&store).await, create(&store).await, create(&store).await);
    store
        .write("UPDATE schedules SET spec = '{}' WHERE id = $1", &[&one.id.as_uuid()])
        .await
        .expect("spoilt");
    let spoil = "UPDATE schedules SET backfill = 'soon' WHERE id = $1";
    store.write(spoil, &[&other.id.as_uuid()]).await.expect("spoilt");
    let ids = vec![one.id, other.id, sound.id];
    assert_eq!(store.get_schedules(ids).await.expect("answered"), [sound]);
    for spoilt in [one, other] {
        let found = store.find_schedule(&spoilt.tenant, &spoilt.name).await;
        let Err(StoreError::Corrupt(words)) = found else { panic!("{found:?}") };
        assert!(words.contains(&spoilt.id.to_string()), "{words}");
    }
}

/// A ledger may have millions of records before the range: the few runs among them have an index of their own.
#[tokio::test]
async fn a_run_that_reaches_into_a_range_is_found_without_a_walk_along_the_ledger() {
    let database = TestDatabase::create().await;
    let store = connect(&database).await;
    let client = store.client().await.expect("a connection");
    let fill = "INSERT INTO fires SELECT '00000000-0000-0000-0000-000000000001'::uuid, n, n, 1, n, 1, 1 \
                FROM generate_series(1, 20000) AS n; \
                UPDATE fires SET count = 50, last_at = nominal_at + 49 WHERE nominal_at % 5000 = 0; \
                ANALYZE fires";
    client.batch_execute(fill).await.expect("a ledger");
    let values = "'00000000-0000-0000-0000-000000000001', 19990, 19999";
    let plan = plan_of(&client, "force_generic_plan", "COSTS ON", fires::WITHIN, values).await;
    assert!(plan.contains("fires_runs") && plan.contains("fires_pkey"), "{plan}");
    assert!(!plan.contains("Seq Scan"), "{plan}");
}

#[tokio::test]
async fn the_jobs_of_a_schedule_are_found_along_its_index() {
    let database = TestDatabase::create().await;
    let store = connect(&database).await;
    let mut made = create(&store).await;
    for minute in 0..12 {
        submit(&store, (0..BOUND).map(|_| job().created_at(at(minute * 60_000 + 1)))).await;
        let advanced = store.advance_schedules(vec![step(&made, minute)]).await.expect("answered");
        assert_eq!(advanced, [Advanced::Done]);
        made.revision += 1;
    }
    let query = JobQuery { schedule_id: Some(made.id), limit: 12, ..JobQuery::default() };
    // More foreign jobs lie between any two of them than may be looked at for a page.
    let page = list_jobs(&store, &query, 13).await.expect("a page");
    assert_eq!((page.items.len(), page.next), (12, None));
}

#[tokio::test]
async fn a_step_the_server_gave_up_is_certainly_not_done() {
    let database = TestDatabase::create().await;
    let options =
        PostgresOptions { statement_timeout: Duration::from_millis(100), ..PostgresOptions::default() };
    let store = PostgresStore::connect(&database.url(), options).await.expect("connected");
    let schedule = create(&store).await;
    let blocker = connect(&database).await.client().await.expect("a connection");
    blocker.batch_execute("BEGIN; SELECT FROM schedules FOR UPDATE").await.expect("locked");
    let advanced = store.advance_schedules(vec![step(&schedule, 1)]).await;
    assert!(matches!(advanced, Err(StoreError::Aborted(_))), "{advanced:?}");
    assert_eq!(number(&store, "SELECT count(*) FROM jobs").await, 0);
}

#[tokio::test]
async fn a_step_whose_connection_ends_under_way_is_unknown() {
    let database = TestDatabase::create().await;
    let store = Arc::new(connect(&database).await);
    let schedule = create(&store).await;
    let blocker = connect(&database).await.client().await.expect("a connection");
    blocker.batch_execute("BEGIN; SELECT FROM schedules FOR UPDATE").await.expect("locked");

    let advancing = Arc::clone(&store);
    let advanced = tokio::spawn(async move { advancing.advance_schedules(vec![step(&schedule, 1)]).await });
    eventually("the step waits", async || number(&store, STUCK).await == 1).await;
    store.read(END_STUCK, &[]).await.expect("ended");
    let advanced = advanced.await.expect("it answers");
    assert!(matches!(advanced, Err(StoreError::Unknown(_))), "{advanced:?}");
}

/// A trigger does not change the revision: a step that waited for it must still see its record.
#[tokio::test]
async fn a_step_that_waited_for_a_trigger_sees_its_record() {
    let database = TestDatabase::create().await;
    let store = Arc::new(connect(&database).await);
    let schedule = create(&store).await;
    let triggering = connect(&database).await.client().await.expect("a connection");
    let record = "BEGIN; SELECT FROM schedules FOR NO KEY UPDATE; \
                  INSERT INTO fires SELECT id, $nominal, $nominal, 1, 0, 4, 9, gen_random_uuid() FROM schedules";
    let record = record.replace("$nominal", &at(60_000).as_millis().to_string());
    triggering.batch_execute(&record).await.expect("recorded, not yet committed");

    let advancing = Arc::clone(&store);
    let advanced = tokio::spawn(async move { advancing.advance_schedules(vec![step(&schedule, 1)]).await });
    eventually("the step waits", async || number(&store, STUCK).await == 1).await;
    triggering.batch_execute("COMMIT").await.expect("committed");
    assert_eq!(advanced.await.expect("it ends").expect("answered"), [Advanced::Stale]);
    assert_eq!(number(&store, "SELECT count(*) FROM jobs").await, 0);
}
