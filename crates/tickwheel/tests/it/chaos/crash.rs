//! A crash between sending a call and recording its end: the call is repeated, soon, and can be told from the first.

use std::time::Duration;

use crate::api::{http_job, id_of, text};
use crate::eventually::eventually;
use crate::server::{Server, StoreKind};
use crate::target::{Gate, Reply, Target};

/// Far longer than the test waits: a repetition within it owes nothing to the lease.
const LEASE: &str = "120s";
const SOON: Duration = Duration::from_secs(5);

#[tokio::test]
async fn a_call_under_way_in_a_crash_on_sqlite_is_repeated_without_waiting_for_the_lease() {
    crash_during_a_call(StoreKind::Sqlite).await;
}

#[tokio::test]
async fn a_call_under_way_in_a_crash_on_postgres_is_repeated_without_waiting_for_the_lease() {
    crash_during_a_call(StoreKind::Postgres).await;
}

async fn crash_during_a_call(kind: StoreKind) {
    let target = Target::start().await;
    let never = Gate::closed();
    target.on("/", move |call| match call.fencing_token() {
        1 => Reply::ok().behind(&never),
        _ => Reply::ok(),
    });
    let mut server = Server::builder(kind).env("TICKWHEEL_ENGINE_LEASE", LEASE).start().await;
    let id = id_of(&server.api().submit(&http_job(&target.url("/"))).await);
    target.called("/", 1).await;
    server.kill9().await;
    server.restart().await;

    let calls = eventually("the call to be repeated", SOON, async || {
        Some(target.calls_for(&id)).filter(|calls| calls.len() == 2)
    })
    .await;
    assert_eq!(calls[0].header("idempotency-key"), calls[1].header("idempotency-key"), "I6");
    assert_ne!(calls[0].header("tickwheel-token"), calls[1].header("tickwheel-token"));
    assert_eq!([calls[0].fencing_token(), calls[1].fencing_token()], [1, 2], "I3");

    let job = server.api().wait(&id).await;
    assert_eq!(text(&job, "status"), "completed", "{job}");
    let attempts = server.api().attempts(&id).await;
    let outcomes: Vec<&str> = attempts.iter().map(|attempt| text(attempt, "outcome")).collect();
    assert_eq!(outcomes, ["lost", "completed"]);
    let late = format!("/api/v1/attempts/{}/complete", calls[0].header("tickwheel-token"));
    assert_eq!(server.api().act(&late).await.expect(409).code(), "stale_token");
}
