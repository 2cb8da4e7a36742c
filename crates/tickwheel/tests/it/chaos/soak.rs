//! Anything may happen to either of two servers at any time, for as long as you like: `TICKWHEEL_CHAOS_ROUNDS`. One of
//! them is left alone each time, so recovery is promised throughout.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::end_all_connections;
use super::kills::number_from;
use super::load::Load;
use crate::checker::{Checker, Conditions};
use crate::proxy::Proxy;
use crate::server::{Server, StoreKind};
use crate::target::Target;

const ROUNDS: u64 = 6;
const LEASE: Duration = Duration::from_secs(2);
const RECOVERED_WITHIN: Duration = Duration::from_secs(4);
const FAULT_MS: std::ops::Range<u64> = 50..2_500;
const BETWEEN_MS: std::ops::Range<u64> = 100..900;
const COMMITS: [&str; 4] =
    ["INSERT INTO jobs (", "attempt = j.attempt + 1", "INSERT INTO finished_jobs", "UPDATE schedules"];

#[derive(Clone, Copy, Debug)]
enum Harm {
    Kill,
    Stop,
    Freeze,
    Cut,
    Stall,
    LoseAnswer,
    EndConnections,
}

const HARMS: [Harm; 7] =
    [Harm::Kill, Harm::Stop, Harm::Freeze, Harm::Cut, Harm::Stall, Harm::LoseAnswer, Harm::EndConnections];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_survive_whatever_happens_to_either_of_them() {
    let rounds = number_from("TICKWHEEL_CHAOS_ROUNDS").unwrap_or(ROUNDS);
    let seed = number_from("TICKWHEEL_CHAOS_SEED").unwrap_or_else(rand::random);
    println!("{rounds} rounds, TICKWHEEL_CHAOS_SEED={seed}");
    let mut rng = StdRng::seed_from_u64(seed);
    let target = Target::start().await;
    let lease = format!("{}s", LEASE.as_secs());
    let builder = Server::builder(StoreKind::Postgres)
        .env("TICKWHEEL_ENGINE_LEASE", &lease)
        .env("TICKWHEEL_POISON_LOST", "1000");
    let (first, first_wire) = builder.clone().behind_a_wire().await;
    let first = first.start().await;
    let (second, second_wire) = builder.beside(&first).behind_a_wire().await;
    let mut servers = [(first, first_wire), (second.start().await, second_wire)];
    let load = Load::start(&target, seed);
    load.point_at(servers.iter().map(|(server, _)| server.api()));
    let mut conditions = Conditions { late_calls: true, ..Conditions::default() };
    for _ in 0..rounds {
        pause(&mut rng, BETWEEN_MS).await;
        let (harmed, harm) = (rng.random_range(0..2), HARMS[rng.random_range(0..HARMS.len())]);
        println!("{harm:?} to server {harmed}");
        load.point_at([servers[1 - harmed].0.api()]);
        conditions.fault_for(RECOVERED_WITHIN);
        let (server, wire) = &mut servers[harmed];
        harm.befall(server, wire, &mut rng).await;
        server.ready().await;
        conditions.fault_for(RECOVERED_WITHIN);
        load.point_at(servers.iter().map(|(server, _)| server.api()));
        load.acknowledges(20).await;
    }
    let acknowledged = load.stop().await;
    let checker = Checker::gather(&servers[0].0.api(), &target, &acknowledged).await;
    println!("{}", checker.summary(&acknowledged));
    checker.check(&acknowledged, &conditions);
}

impl Harm {
    /// Does it and undoes it.
    async fn befall(self, server: &mut Server, wire: &Proxy, rng: &mut StdRng) {
        match self {
            Self::Kill => {
                server.kill9().await;
                pause(rng, FAULT_MS).await;
                server.restart().await;
            }
            Self::Stop => {
                assert_eq!(server.terminate().await.code(), Some(0));
                server.restart().await;
            }
            Self::Freeze => {
                server.freeze();
                pause(rng, FAULT_MS).await;
                server.thaw();
            }
            Self::Cut => {
                wire.cut();
                pause(rng, FAULT_MS).await;
                wire.mend();
            }
            Self::Stall => {
                wire.stall();
                pause(rng, FAULT_MS).await;
                wire.mend();
            }
            Self::LoseAnswer => {
                wire.lose_answer_to(COMMITS[rng.random_range(0..COMMITS.len())]);
                pause(rng, FAULT_MS).await;
            }
            Self::EndConnections => drop(end_all_connections(server).await),
        }
    }
}

async fn pause(rng: &mut StdRng, milliseconds: std::ops::Range<u64>) {
    let pause = Duration::from_millis(rng.random_range(milliseconds));
    // sleep: how long a fault lasts, and when it comes, is random
    tokio::time::sleep(pause).await;
}
