//! Calls that are under way for certain when something happens. The first attempt of these jobs is answered when it is
//! released, and the next one, which another server may have made of it, later still: if the end of the first counted,
//! it would be seen.

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
    first: Gate,
    later: Gate,
    jobs: Vec<Value>,
}

impl Held {
    /// Submits some to each server and waits until all of them are called. Whoever takes a job in, takes it up.
    pub async fn by(target: &Target, servers: [&Server; 2]) -> Self {
        let (first, later) = (Gate::closed(), Gate::closed());
        let gates = [first.clone(), later.clone()];
        target.on("/held", move |call| signed(call).behind(&gates[usize::from(call.fencing_token() > 1)]));
        let mut jobs = Vec::new();
        for server in servers {
            let some: Vec<Value> = iter::repeat_n(http_job(&target.url("/held")), JOBS_PER_SERVER).collect();
            jobs.extend(server.api().submit_batch(&some).await);
        }
        target.called("/held", jobs.len()).await;
        Self { first, later, jobs }
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
