//! The rule of what may start stands twice: in the core, and in the statement that claims. They say the same.

use tickwheel_core::claim::StartConditions;
use tickwheel_core::ports::{Claim, ControlStore, JobStore, RunStore};
use tickwheel_core::workflow::RunStatus;
use tickwheel_core::{JobId, SessionId, State, Timestamp};
use tickwheel_testkit::TestDatabase;
use tickwheel_testkit::fixtures::{at, job, run};
use uuid::Uuid;

use super::{connect, open_session, submit};
use crate::postgres::PostgresStore;

const NOW: Timestamp = at(1_000);
const QUEUES: [&str; 2] = ["open", "paused"];

/// A row of `jobs` as it is before a claim.
#[derive(Clone, Copy)]
struct Before {
    id: JobId,
    state: State,
    due_at: Timestamp,
    queue_is_paused: bool,
    run_is_paused: bool,
}

/// Every state, due and not due, in both queues, outside of runs and in runs that go on and that are paused.
async fn every_combination(store: &PostgresStore) -> Vec<Before> {
    let combinations: Vec<(State, Timestamp, bool)> = State::ALL
        .into_iter()
        .flat_map(|state| [at(999), NOW, at(1_001)].map(|due_at| (state, due_at)))
        .flat_map(|(state, due_at)| [false, true].map(|queue_is_paused| (state, due_at, queue_is_paused)))
        .collect();
    let plain = submit(store, combinations.iter().map(|_| job())).await;
    let mut rows = rows(&combinations, &plain, false);
    for run_is_paused in [false, true] {
        let tasks = combinations.iter().fold(run(), |builder, _| builder.task([]));
        let tasks = tasks.with(|run| {
            run.progress.status = if run_is_paused { RunStatus::Paused } else { RunStatus::Running };
        });
        let start = tasks.build();
        let ids: Vec<JobId> = start.jobs.iter().map(|job| job.id).collect();
        store.start_run(start).await.expect("started");
        rows.extend(self::rows(&combinations, &ids, run_is_paused));
    }
    rows
}

fn rows(combinations: &[(State, Timestamp, bool)], ids: &[JobId], run_is_paused: bool) -> Vec<Before> {
    let row = |(&id, &(state, due_at, queue_is_paused))| Before {
        id,
        state,
        due_at,
        queue_is_paused,
        run_is_paused,
    };
    ids.iter().zip(combinations).map(row).collect()
}

async fn write(store: &PostgresStore, rows: &[Before]) {
    let ids: Vec<Uuid> = rows.iter().map(|row| row.id.as_uuid()).collect();
    let states: Vec<i16> = rows.iter().map(|row| row.state.code()).collect();
    let due_at: Vec<i64> = rows.iter().map(|row| row.due_at.as_millis()).collect();
    let queues: Vec<&str> = rows.iter().map(|row| QUEUES[usize::from(row.queue_is_paused)]).collect();
    let client = store.client().await.expect("a connection");
    let sql = "UPDATE jobs AS j SET state = s.state, due_at = s.due_at, queue = s.queue
               FROM unnest($1::uuid[], $2::smallint[], $3::bigint[], $4::text[]) AS s (id, state, due_at, queue)
               WHERE j.id = s.id";
    let written = client.execute(sql, &[&ids, &states, &due_at, &queues]).await.expect("written");
    assert_eq!(written, rows.len() as u64);
}

#[tokio::test]
async fn a_claim_takes_exactly_what_the_core_says_may_start() {
    let database = TestDatabase::create().await;
    let store = connect(&database).await;
    store.set_queue_paused("paused", true).await.expect("paused");
    let rows = every_combination(&store).await;
    let (open, unknown) = (open_session(&store, 1).await, SessionId::from_uuid(Uuid::from_u128(9)));
    let mut started = 0;
    for (is_halted, session) in [(false, open), (false, unknown), (true, open), (true, unknown)] {
        write(&store, &rows).await;
        store.set_halted(is_halted).await.expect("set");
        let may_start = |row: &&Before| {
            let Before { state, due_at, queue_is_paused, run_is_paused, .. } = **row;
            let session_is_open = session == open;
            let now = NOW;
            StartConditions { state, due_at, now, is_halted, queue_is_paused, run_is_paused, session_is_open }
                .are_met()
        };
        let expected: Vec<JobId> = rows.iter().filter(may_start).map(|row| row.id).collect();
        let jobs = rows.iter().map(|row| row.id).collect();
        let claimed =
            store.claim(Claim { claimed_by: None, session, jobs, now: NOW }).await.expect("claimed");
        assert_eq!(claimed.iter().map(|job| job.id).collect::<Vec<_>>(), expected, "{is_halted} {session}");
        started += claimed.len();
    }
    assert_eq!(started, 4, "at two times, outside of runs and in one that goes on");
}
