//! Calls that are under way for certain when something happens: the first attempt of these jobs is not answered before it
//! is released, and later ones at once.

use std::iter;

use serde_json::Value;

use super::load::signed;
use crate::api::{http_job, id_of};
use crate::checker::Ledger;
use crate::server::Server;
use crate::target::{Gate, Target};

const JOBS_PER_SERVER: usize = 5;

/// See the module.
pub struct Held {
    gate: Gate,
    jobs: Vec<Value>,
}

impl Held {
    /// Submits some to each server and waits until all of them are called. Whoever takes a job in, takes it up.
    pub async fn by(target: &Target, servers: [&Server; 2]) -> Self {
        let gate = Gate::closed();
        let held_by = gate.clone();
        target.on("/held", move |call| match call.fencing_token() {
            1 => signed(call).behind(&held_by),
            _ => signed(call),
        });
        let mut jobs = Vec::new();
        for server in servers {
            let some: Vec<Value> = iter::repeat_n(http_job(&target.url("/held")), JOBS_PER_SERVER).collect();
            jobs.extend(server.api().submit_batch(&some).await);
        }
        target.called("/held", jobs.len()).await;
        Self { gate, jobs }
    }

    /// Lets the first attempts be answered.
    pub fn release(&self) {
        self.gate.open();
    }

    /// They were acknowledged too.
    pub fn note_in(self, ledger: &mut Ledger) {
        ledger.jobs.extend(self.jobs.into_iter().map(|job| (id_of(&job), job)));
    }
}
