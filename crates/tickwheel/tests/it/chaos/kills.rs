//! `kill -9` at random moments, again and again, while clients submit and attempts are under way.

use std::time::Duration;

use jiff::Timestamp;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::load::Load;
use crate::checker::{Checker, Conditions};
use crate::server::{Server, StoreKind};
use crate::target::Target;

const UPTIME_MS: std::ops::Range<u64> = 20..250;
/// A server needs longer than this to come up, at least on a busy machine: some die before they have looked around.
const BIRTH_MS: std::ops::Range<u64> = 0..120;
const KILLED_AT_BIRTH: f64 = 0.2;
/// From the moment it is ready again.
const RECOVERED_WITHIN: Duration = Duration::from_secs(3);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_doubled_or_early_when_a_server_on_sqlite_is_killed_again_and_again() {
    kill_again_and_again(StoreKind::Sqlite, 50).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_doubled_or_early_when_a_server_on_postgres_is_killed_again_and_again() {
    kill_again_and_again(StoreKind::Postgres, 10).await;
}

async fn kill_again_and_again(kind: StoreKind, rounds: u64) {
    let rounds = number_from("TICKWHEEL_CHAOS_ROUNDS").unwrap_or(rounds);
    let seed = number_from("TICKWHEEL_CHAOS_SEED").unwrap_or_else(rand::random);
    println!("{kind:?}: {rounds} rounds, TICKWHEEL_CHAOS_SEED={seed}");
    let mut rng = StdRng::seed_from_u64(seed);
    let target = Target::start().await;
    // Here the server dies of something else than its jobs, and they must not be blamed for it.
    let mut server = Server::builder(kind).env("TICKWHEEL_POISON_LOST", "1000").start().await;
    let load = Load::start(&target, seed);
    let mut conditions = Conditions::default();
    for _ in 0..rounds {
        load.point_at([server.api()]);
        pause(&mut rng, UPTIME_MS).await;
        let killed_at = Timestamp::now();
        server.kill9().await;
        load.point_at([]);
        if rng.random_bool(KILLED_AT_BIRTH) {
            server.launch().await;
            pause(&mut rng, BIRTH_MS).await;
        }
        server.restart().await;
        conditions.fault_since(killed_at, RECOVERED_WITHIN);
    }
    load.point_at([server.api()]);
    let acknowledged = load.stop().await;

    let checker = Checker::gather(&server.api(), &target, &acknowledged).await;
    println!("{kind:?}: {}", checker.summary(&acknowledged));
    checker.check(&acknowledged, &conditions);
    assert!(acknowledged.jobs.len() as u64 > rounds, "there was no load to speak of");
    assert!(checker.attempts_that("lost") > 0, "no kill hit an attempt under way");
}

async fn pause(rng: &mut StdRng, milliseconds: std::ops::Range<u64>) {
    let pause = Duration::from_millis(rng.random_range(milliseconds));
    // sleep: the moment of the kill is random
    tokio::time::sleep(pause).await;
}

/// A number from the environment, if there is one.
pub fn number_from(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok().filter(|text| !text.is_empty())?;
    Some(text.parse().unwrap_or_else(|error| panic!("{variable}={text:?}: {error}")))
}
