//! A job that kills the server that runs it, each time. Something starts the server again, and others wait for their
//! turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::api::{http_job, id_of, text};
use crate::checker::{Checker, Conditions, Ledger};
use crate::e2e::{on_both_stores, with};
use crate::eventually::{PATIENCE, eventually};
use crate::server::{Server, StoreKind};
use crate::target::{Reply, Target};

on_both_stores! {
    a_job_that_kills_its_server_is_given_up_and_takes_no_other_with_it,
}

const LOST_MAX: usize = 3;
const OTHERS: usize = 20;
const RECOVERED_WITHIN: Duration = Duration::from_secs(3);

async fn a_job_that_kills_its_server_is_given_up_and_takes_no_other_with_it(kind: StoreKind) {
    let target = Target::start().await;
    let mut server = Server::builder(kind).env("TICKWHEEL_POISON_LOST", &LOST_MAX.to_string()).start().await;
    let victim = Arc::new(AtomicI32::new(0));
    let aim = victim.clone();
    target.on("/deadly", move |_| {
        let process = Pid::from_raw(aim.load(Ordering::SeqCst)).expect("a process");
        kill_process(process, Signal::KILL).unwrap();
        Reply::ok()
    });
    let job = |path: &str, fields: Value| with(http_job(&target.url(path)), fields);
    let others = server.api().submit_batch(&vec![job("/harmless", json!({"delay": "4s"})); OTHERS]).await;
    victim.store(server.pid().as_raw_nonzero().get(), Ordering::SeqCst);
    let deadly = server.api().submit(&job("/deadly", json!({"delay": "200ms"}))).await;
    let mut ledger = Ledger { given_up: [id_of(&deadly)].into(), ..Ledger::default() };
    others.iter().chain([&deadly]).for_each(|job| ledger.acknowledge(job));

    let mut conditions = Conditions::default();
    for crash in 1..=LOST_MAX {
        eventually("the server to be killed", PATIENCE, async || (!server.is_up()).then_some(())).await;
        let died_at = Timestamp::now() - Duration::from_secs(1);
        assert_eq!(target.calls_to("/deadly").len(), crash);
        server.kill9().await;
        server.launch().await;
        victim.store(server.pid().as_raw_nonzero().get(), Ordering::SeqCst);
        if crash == LOST_MAX {
            server.announced().await;
        }
        conditions.fault_since(died_at, RECOVERED_WITHIN);
    }
    let letter = eventually("it to be given up", PATIENCE, async || {
        let answer = server.api().get(&format!("/api/v1/dead-letters/{}", id_of(&deadly))).await;
        (answer.status == 200).then(|| answer.json())
    })
    .await;
    assert_eq!(text(&letter, "reason"), "poison_pill");

    let checker = Checker::gather(&server.api(), &target, &ledger).await;
    checker.check(&ledger, &conditions);
    assert_eq!(checker.attempts_that("lost"), LOST_MAX);
    assert_eq!(target.calls_to("/harmless").len(), OTHERS, "each once");
}
