//! The database commits, and the answer is lost: nobody but the database knows that it was done. It must be neither
//! forgotten nor done again, whatever it was.

use std::time::Duration;

use super::load::Load;
use crate::checker::{Checker, Conditions};
use crate::server::{Server, StoreKind};
use crate::target::Target;

/// Statements by which a transaction is known.
const SUBMIT_WITH_KEY: &str = "INSERT INTO idempotency_keys";
const SUBMIT: &str = "INSERT INTO jobs (";
const CLAIM: &str = "attempt = j.attempt + 1";
const SETTLE: &str = "INSERT INTO finished_jobs";
const FIRE: &str = "UPDATE schedules";
const ADVANCE: &str = "UPDATE workflow_runs";
const ROUNDS: usize = 2;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_committed_is_neither_lost_nor_repeated_when_the_answer_is_lost() {
    let target = Target::start().await;
    let (builder, wire) = Server::builder(StoreKind::Postgres).behind_a_wire().await;
    let server = builder.start().await;
    let load = Load::start(&target, 13);
    load.point_at([server.api()]);
    let mut conditions = Conditions::default();
    let mut lost = 0;
    for _ in 0..ROUNDS {
        for text in [SUBMIT_WITH_KEY, SUBMIT, CLAIM, SETTLE, FIRE, ADVANCE] {
            wire.lose_answer_to(text);
            lost += 1;
            wire.has_lost(lost).await;
            conditions.fault_for(Duration::from_secs(2));
        }
        load.acknowledges(20).await;
    }
    let acknowledged = load.stop().await;
    let checker = Checker::gather(&server.api(), &target, &acknowledged).await;
    println!("{lost} answers lost: {}", checker.summary(&acknowledged));
    checker.check(&acknowledged, &conditions);
    assert_eq!(checker.attempts_that("lost"), 0, "the server lived, and so did its lease");
}
