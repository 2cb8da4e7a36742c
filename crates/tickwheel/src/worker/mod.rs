//! `tickwheel worker`: the built-in executors as a worker, on a machine of its own.
//!
//! Built on the worker library, which talks to the server, keeps the lease, and drains. Here is what lies between it and
//! the executors: [`attempt`] makes of an assignment what an executor runs, [`outcome`] makes of its end what is
//! reported, and [`output`] sends what a command prints to the log of its job. What may be called and run, and as whom,
//! this machine's own configuration says.

mod attempt;
mod outcome;
mod output;

use std::sync::Arc;

use tickwheel_core::ports::{Clock, Executor};
use tickwheel_engine::SystemClock;
use tickwheel_worker::{CancelReason, Ctx, ExecutorKind, Outcome, Worker};

use crate::config::Config;
use crate::serve::{executors, processes};
use output::JobLogs;

/// The worker with the executors that the configuration allows.
pub fn with_executors(worker: Worker, config: &Config) -> anyhow::Result<Worker> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let outbound = executors::outbound(config, executors::address_guard(config, None));
    let http: Arc<dyn Executor> = Arc::new(executors::http(config, outbound, clock));
    let worker = worker.execute(ExecutorKind::Http, move |ctx| execute(http.clone(), None, ctx));
    let logs = Arc::new(JobLogs::default());
    Ok(match processes::executor(config, logs.clone())? {
        None => worker,
        Some(process) => worker
            .execute(ExecutorKind::Process, move |ctx| execute(process.clone(), Some(logs.clone()), ctx)),
    })
}

/// Runs an attempt to its end, or until it is to stop: to drop the executor's future is to stop the work.
async fn execute(executor: Arc<dyn Executor>, logs: Option<Arc<JobLogs>>, ctx: Ctx) -> Outcome {
    let attempt = attempt::context(&ctx);
    let _logged = logs.map(|logs| logs.open(&ctx));
    let stopped = async {
        match ctx.cancelled().await {
            // The executor knows its timeout, and says more about it.
            CancelReason::Deadline => std::future::pending().await,
            reason => reason,
        }
    };
    tokio::select! {
        biased;
        ended = executor.run(&attempt) => outcome::of(ended),
        reason = stopped => outcome::stopped(reason),
    }
}
