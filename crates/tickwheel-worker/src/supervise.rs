//! Runs one call of a handler from its start to its report: deadline, cancel, grace, panics.
//!
//! ```text
//! running ─returned, failed or panicked──────────────▶ report
//!    └─ cancelled ─▶ grace ─returned─────────────────▶ report
//!                      └─ over ─▶ async: dropped ────▶ report by the reason
//!                                 blocking: stuck ───▶ no report; its slot is free when the thread ends
//! ```

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use serde_json::value::RawValue;
use tickwheel_client::Client;
use tracing::Instrument as _;

use crate::attempt::{Attempt, CancelReason};
use crate::ctx::{Ctx, Link};
use crate::current;
use crate::error::JobError;
use crate::handler::{Call, Registered, Returned, panicked};
use crate::middleware::{self, Middleware};
use crate::outcome::{Outcome, Rules};
use crate::telemetry::Trace;

/// How often a slot that does not come free is mentioned.
const STUCK_LOG_INTERVAL: Duration = Duration::from_secs(30);

/// Everything a call needs beside its attempts.
pub(crate) struct Program<S> {
    pub state: Arc<S>,
    pub client: Client,
    pub middleware: Arc<[Middleware<S>]>,
}

/// What becomes of the ends of attempts.
pub(crate) trait Ends: Send + Sync {
    fn finish(&self, attempt: &Arc<Attempt>, outcome: Option<Outcome>, ran: Duration);
    fn add_stuck(&self);
    fn remove_stuck(&self);
    fn result_bytes_max(&self) -> usize;
    /// How long a handler has to end when the worker shuts down.
    fn shutdown_grace(&self) -> Duration;
}

/// How a call ended.
enum Ended {
    Returned(Returned),
    /// Its time after the cancel was over.
    Dropped,
    /// The same, but it cannot be dropped, and has ended only now.
    Stuck,
}

/// Runs a handler for these attempts. Those that were given back meanwhile are left out.
pub(crate) async fn supervise<S: Send + Sync + 'static>(
    program: Arc<Program<S>>,
    handler: Arc<Registered<S>>,
    attempts: Vec<Arc<Attempt>>,
    link: Arc<dyn Link>,
    ends: Arc<dyn Ends>,
) {
    let attempts: Vec<_> = attempts.into_iter().filter(|attempt| attempt.start()).collect();
    let Some(first) = attempts.first() else { return };
    let (job_id, attempt) = (first.job.id, first.number);
    let span = tracing::info_span!("process", "type" = handler.name, %job_id, attempt);
    let started = Instant::now();
    tracing::debug!(parent: &span, jobs = attempts.len(), "started");
    let ctx = Ctx::new(attempts.clone(), program.state.clone(), program.client.clone(), link);
    let scope = ctx.current.clone();
    // The function itself is user code too: it may panic before it returns a future.
    let chain = program.middleware.clone();
    let make = {
        let handler = handler.clone();
        move || middleware::call(handler, &chain, ctx)
    };
    let call = Watched { call: None, make: Some(Box::new(make)), attempt: first.clone() };
    let trace = Trace::begin(&attempts);
    let call = trace.around(current::scope(scope, call).instrument(span.clone()));
    let grace = handler.options.cancel_grace;
    let ended = until_ended(call, &attempts, grace, handler.is_blocking, &*ends).await;
    let ran = started.elapsed();
    let rules =
        Rules { not_retryable: &handler.options.not_retryable, result_bytes_max: ends.result_bytes_max() };
    for (attempt, outcome) in outcomes(ended, &attempts, rules) {
        say(attempt, outcome.as_ref(), ran, &span);
        trace.ended(outcome.as_ref());
        ends.finish(attempt, outcome, ran);
    }
}

/// Waits for the end of a call, its deadline and its cancel.
async fn until_ended(
    call: impl Future<Output = Returned>,
    attempts: &[Arc<Attempt>],
    grace: Duration,
    is_blocking: bool,
    ends: &dyn Ends,
) -> Ended {
    let mut call = std::pin::pin!(call);
    let deadline = attempts.iter().map(|attempt| attempt.deadline).max().unwrap_or_else(Instant::now);
    let all_cancelled = async {
        let mut reason = CancelReason::Requested;
        for attempt in attempts {
            reason = attempt.cancelled().await;
        }
        reason
    };
    let reason = tokio::select! {
        biased;
        returned = &mut call => return Ended::Returned(returned),
        reason = all_cancelled => reason,
        () = tokio::time::sleep_until(deadline.into()) => {
            attempts.iter().for_each(|attempt| { attempt.cancel(CancelReason::Deadline); });
            CancelReason::Deadline
        }
    };
    let grace = if reason == CancelReason::Shutdown { grace.min(ends.shutdown_grace()) } else { grace };
    tracing::debug!(job_id = %attempts[0].job.id, %reason, "cancelled");
    if let Ok(returned) = tokio::time::timeout(grace, &mut call).await {
        return Ended::Returned(returned);
    }
    if !is_blocking {
        return Ended::Dropped;
    }
    ends.add_stuck();
    let since = Instant::now();
    loop {
        let (job_id, seconds) = (attempts[0].job.id, since.elapsed().as_secs());
        let job_type = attempts[0].job_type();
        tracing::warn!(%job_id, "type" = job_type, attempt = attempts[0].number, seconds, "slot stuck: the handler was cancelled and does not end");
        if tokio::time::timeout(STUCK_LOG_INTERVAL, &mut call).await.is_ok() {
            ends.remove_stuck();
            return Ended::Stuck;
        }
    }
}

/// The outcome of each attempt. `None`: nothing is reported.
fn outcomes<'a>(
    ended: Ended,
    attempts: &'a [Arc<Attempt>],
    rules: Rules<'_>,
) -> Vec<(&'a Arc<Attempt>, Option<Outcome>)> {
    let each = |outcome: &dyn Fn(&Attempt) -> Option<Outcome>| {
        attempts.iter().map(|attempt| (attempt, outcome(attempt))).collect()
    };
    match ended {
        Ended::Stuck => each(&|_| None),
        Ended::Dropped => each(&|attempt| {
            attempt.cancel_reason().map(Outcome::stopped).or_else(|| Some(Outcome::released()))
        }),
        Ended::Returned(Err(error)) => {
            let outcome = Outcome::of(Err(error), rules);
            each(&|_| Some(outcome.clone()))
        }
        Ended::Returned(Ok(output)) if output.0.len() != attempts.len() => {
            let error = JobError::new("a middleware returned something else than the handler");
            let outcome = Outcome::of(Err(error.code("batch_result_mismatch")), rules);
            each(&|_| Some(outcome.clone()))
        }
        Ended::Returned(Ok(output)) => {
            let of = |entry: Result<Box<RawValue>, JobError>| Some(Outcome::of(entry, rules));
            attempts.iter().zip(output.0.into_iter().map(of)).collect()
        }
    }
}

fn say(attempt: &Attempt, outcome: Option<&Outcome>, ran: Duration, span: &tracing::Span) {
    let (job_id, job_type, number) = (attempt.job.id, attempt.job_type(), attempt.number);
    let Some(outcome) = outcome else {
        tracing::info!(parent: span, %job_id, "type" = job_type, attempt = number, "a stuck slot is free again");
        return;
    };
    match &outcome.error {
        Some(error) => {
            let code = error.code.as_deref().unwrap_or_default();
            tracing::warn!(%job_id, "type" = job_type, attempt = number, code, error = error.message, retryable = outcome.retryable, "attempt failed");
        }
        None => {
            tracing::debug!(%job_id, "type" = job_type, attempt = number, outcome = %outcome.status, ms = ran.as_millis(), "ended");
        }
    }
}

type Make = Box<dyn FnOnce() -> Call + Send>;

/// A call whose panics are errors, and which notes how long it keeps its thread.
struct Watched {
    make: Option<Make>,
    call: Option<Call>,
    attempt: Arc<Attempt>,
}

impl Future for Watched {
    type Output = Returned;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Returned> {
        let this = &mut *self;
        this.attempt.poll_begins();
        let step = AssertUnwindSafe(|| {
            let call = match (&mut this.call, this.make.take()) {
                (Some(call), _) => call,
                (empty, Some(make)) => empty.insert(make()),
                (None, None) => return Poll::Ready(Err(JobError::new("polled after its end"))),
            };
            call.as_mut().poll(context)
        });
        let polled = std::panic::catch_unwind(step);
        this.attempt.poll_ends();
        match polled {
            Ok(polled) => polled,
            Err(panic) => {
                // What is left of it must not run again.
                let left = this.call.take();
                let _ = std::panic::catch_unwind(AssertUnwindSafe(|| drop(left)));
                Poll::Ready(Err(panicked(&*panic)))
            }
        }
    }
}
