//! Calls that are under way for certain when something happens. The first attempt of these jobs is answered when it is
//! released, and the next one, which another server may have made of it, later still: if the end of the first counted,
//! it would be seen.

use std::{iter, mem};

use serde_json::Value;

use super::load::signed;
use crate::api::{http_job, id_of};
use crate::checker::Ledger;
use crate::server::Server;
use crate::target::{Gate, Target};

const JOBS_PER_SERVER: usize = 5;
const ROUNDS_MAX: usize = 10;
const QUEUE: &str = "held";

/// See the module.
pub struct Held {
    first: Gate,
    later: Gate,
    jobs: Vec<Value>,
}

impl Held {
    /// Submits some to each server and waits until all of them are called, and until each server makes one of the calls
    /// at least. Whoever takes a job in usually takes it up, but the other server may be quicker.
    pub async fn by(target: &Target, servers: [&Server; 2]) -> Self {
        let (first, later) = (Gate::closed(), Gate::closed());
        let gates = [first.clone(), later.clone()];
        target.on("/held", move |call| signed(call).behind(&gates[usize::from(call.fencing_token() > 1)]));
        let mut jobs = Vec::new();
        let mut idle = servers.to_vec();
        for _ in 0..ROUNDS_MAX {
            for server in mem::take(&mut idle) {
                let mut job = http_job(&target.url("/held"));
                job["queue"] = QUEUE.into();
                let some: Vec<Value> = iter::repeat_n(job, JOBS_PER_SERVER).collect();
                jobs.extend(server.api().submit_batch(&some).await);
            }
            target.called("/held", jobs.len()).await;
            for server in servers {
                if running(server).await == 0 {
                    idle.push(server);
                }
            }
            if idle.is_empty() {
                return Self { first, later, jobs };
            }
        }
        panic!("a server leaves all of its jobs to the other one");
    }

    /// Lets the first attempts be answered.
    pub fn release(&self) {
        self.first.open();
    }

    /// Lets all of them end, and writes down that they were acknowledged too.
    pub fn end(self, ledger: &mut Ledger) {
        self.later.open();
        ledger.jobs.extend(self.jobs.into_iter().map(|job| (id_of(&job), job)));
    }
}

/// How many of the calls the server makes itself.
async fn running(server: &Server) -> u64 {
    let queues = server.api().list("/api/v1/queues").await;
    let own = queues.iter().find(|queue| queue["name"] == QUEUE);
    own.and_then(|queue| queue["running"].as_u64()).unwrap_or(0)
}
