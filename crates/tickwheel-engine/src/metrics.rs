//! What is counted and timed, with the names under which Prometheus finds it.

use std::time::Duration;

use metrics::{counter, gauge, histogram};
use tickwheel_core::id::IdSet;
use tickwheel_core::ports::Settled;
use tickwheel_core::schedule::{Fire, FireOutcome, FireReason};
use tickwheel_core::settle::{Next, Settlement};
use tickwheel_core::workflow::{RunStatus, TaskChange};
use tickwheel_core::{AttemptOutcome, JobId, State, Timestamp};

/// A metric's name, kind and meaning.
pub struct Described {
    /// As in `/metrics`.
    pub name: &'static str,
    /// `counter`, `gauge` or `histogram`.
    pub kind: &'static str,
    /// One sentence.
    pub help: &'static str,
}

const fn described(name: &'static str, kind: &'static str, help: &'static str) -> Described {
    Described { name, kind, help }
}

const UNLABELLED_COUNTERS: [&str; 10] = [
    "tickwheel_jobs_submitted_total",
    "tickwheel_attempts_started_total",
    "tickwheel_attempts_not_sent_total",
    "tickwheel_jobs_retried_total",
    "tickwheel_stale_settlements_total",
    "tickwheel_sessions_expired_total",
    "tickwheel_vacuums_total",
    "tickwheel_attempt_log_lines_dropped_total",
    "tickwheel_workflow_runs_started_total",
    "tickwheel_workflow_tasks_stalled_total",
];

/// What the engine asks of the store.
const STORE_OPERATIONS: [&str; 19] = [
    "submit",
    "load",
    "claim",
    "settle",
    "await_report",
    "read",
    "renew",
    "reap",
    "count",
    "callbacks",
    "load_schedules",
    "fire",
    "reconcile",
    "stalls",
    "vacuum",
    "workers",
    "logs",
    "progress",
    "expire",
];

/// Every metric of the engine.
pub const ALL: [Described; 27] = [
    described("tickwheel_jobs_submitted_total", "counter", "Jobs stored by submission."),
    described("tickwheel_attempts_started_total", "counter", "Attempts started."),
    described(
        "tickwheel_attempts_not_sent_total",
        "counter",
        "Attempts that were not sent for a reason of this machine's own.",
    ),
    described("tickwheel_attempts_finished_total", "counter", "Attempts that ended, by outcome."),
    described("tickwheel_jobs_finished_total", "counter", "Jobs that ended, by state."),
    described("tickwheel_jobs_retried_total", "counter", "Attempts after which the job was scheduled again."),
    described(
        "tickwheel_stale_settlements_total",
        "counter",
        "Ends of attempts that came too late and changed nothing.",
    ),
    described(
        "tickwheel_schedule_lag_seconds",
        "histogram",
        "Start of an attempt minus the time it was due.",
    ),
    described("tickwheel_queue_waiting", "gauge", "Jobs that are due and wait for their turn, by queue."),
    described("tickwheel_running", "gauge", "Attempts under way on this node, by queue."),
    described("tickwheel_dead_letters", "gauge", "Dead letters kept."),
    described("tickwheel_commit_jobs", "histogram", "Jobs written in one commit, by operation."),
    described("tickwheel_commit_seconds", "histogram", "Duration of a commit, by operation."),
    described("tickwheel_store_errors_total", "counter", "Store operations that failed, by operation."),
    described(
        "tickwheel_sessions_expired_total",
        "counter",
        "Sessions of other processes that ended without a goodbye.",
    ),
    described("tickwheel_workers", "gauge", "Workers with a session that this node knows."),
    described(
        "tickwheel_jobs_unroutable",
        "gauge",
        "Due jobs for workers that no connected worker can execute. Counted up to 10,000.",
    ),
    described("tickwheel_vacuums_total", "counter", "Tables that were cleared of dead rows."),
    described(
        "tickwheel_attempt_log_lines_dropped_total",
        "counter",
        "Last lines of attempts that could not be stored.",
    ),
    described("tickwheel_callbacks_total", "counter", "Tries to deliver a callback, by result."),
    described("tickwheel_schedule_fires_total", "counter", "Firings of schedules, by outcome."),
    described(
        "tickwheel_schedule_fire_lag_seconds",
        "histogram",
        "Firing of a schedule minus its time, of those that were on time.",
    ),
    described("tickwheel_schedules_near", "gauge", "Schedules that fire soon, held in memory."),
    described(
        "tickwheel_schedules_catching_up",
        "gauge",
        "Schedules that missed firings and wait for their turn to make up for them.",
    ),
    described("tickwheel_workflow_runs_started_total", "counter", "Runs of workflows that were started."),
    described(
        "tickwheel_workflow_runs_finished_total",
        "counter",
        "Runs of workflows that ended, by status.",
    ),
    described(
        "tickwheel_workflow_tasks_stalled_total",
        "counter",
        "Tasks that were found to wait longer than their workflow allows.",
    ),
];

/// Registers the meanings with the recorder, and every counter at zero: a counter that is born at one hides its first
/// event from whoever watches its growth.
pub fn describe() {
    for name in UNLABELLED_COUNTERS {
        counter!(name).increment(0);
    }
    for outcome in AttemptOutcome::ALL {
        counter!("tickwheel_attempts_finished_total", "outcome" => outcome.as_str()).increment(0);
    }
    for state in State::ALL.into_iter().filter(|state| state.is_terminal()) {
        counter!("tickwheel_jobs_finished_total", "state" => state.as_str()).increment(0);
    }
    for operation in STORE_OPERATIONS {
        counter!("tickwheel_store_errors_total", "operation" => operation).increment(0);
    }
    for outcome in FireOutcome::ALL {
        counter!("tickwheel_schedule_fires_total", "outcome" => outcome.as_str()).increment(0);
    }
    for result in ["delivered", "retried", "given_up"] {
        counter!("tickwheel_callbacks_total", "result" => result).increment(0);
    }
    for status in RunStatus::ALL.into_iter().filter(|status| status.is_over()) {
        counter!("tickwheel_workflow_runs_finished_total", "status" => status.as_str()).increment(0);
    }
    for metric in ALL {
        match metric.kind {
            "counter" => metrics::describe_counter!(metric.name, metric.help),
            "gauge" => metrics::describe_gauge!(metric.name, metric.help),
            _ => metrics::describe_histogram!(metric.name, metric.help),
        }
    }
}

pub(crate) fn vacuumed(tables: u64) {
    counter!("tickwheel_vacuums_total").increment(tables);
}

pub(crate) fn log_lines_dropped(lines: usize) {
    counter!("tickwheel_attempt_log_lines_dropped_total").increment(lines as u64);
}

pub(crate) fn submitted(jobs: usize) {
    counter!("tickwheel_jobs_submitted_total").increment(jobs as u64);
}

pub(crate) fn started(lag: Duration) {
    counter!("tickwheel_attempts_started_total").increment(1);
    histogram!("tickwheel_schedule_lag_seconds").record(lag);
}

pub(crate) fn finished_attempt(settlement: &Settlement, result: Settled) {
    if result == Settled::Stale {
        counter!("tickwheel_stale_settlements_total").increment(1);
        return;
    }
    // What was never sent leaves no other trace.
    if matches!(settlement.next, Next::ReturnToQueue { .. }) {
        counter!("tickwheel_attempts_not_sent_total").increment(1);
        return;
    }
    counter!("tickwheel_attempts_finished_total", "outcome" => settlement.outcome.as_str()).increment(1);
    match settlement.next {
        Next::Again { .. } => counter!("tickwheel_jobs_retried_total").increment(1),
        _ => {
            counter!("tickwheel_jobs_finished_total", "state" => settlement.next.state().as_str())
                .increment(1);
        }
    }
}

pub(crate) fn cancelled_while_waiting() {
    counter!("tickwheel_jobs_finished_total", "state" => "cancelled").increment(1);
}

pub(crate) fn commit(operation: &'static str, jobs: usize, took: Duration) {
    histogram!("tickwheel_commit_jobs", "operation" => operation).record(jobs as f64);
    histogram!("tickwheel_commit_seconds", "operation" => operation).record(took);
}

pub(crate) fn store_error(operation: &'static str) {
    counter!("tickwheel_store_errors_total", "operation" => operation).increment(1);
}

pub(crate) fn unroutable(count: u64) {
    gauge!("tickwheel_jobs_unroutable").set(count as f64);
}

pub(crate) fn workers(count: usize) {
    gauge!("tickwheel_workers").set(count as f64);
}

pub(crate) fn sessions_expired(count: usize) {
    counter!("tickwheel_sessions_expired_total").increment(count as u64);
}

pub(crate) fn callback(result: &'static str) {
    counter!("tickwheel_callbacks_total", "result" => result).increment(1);
}

pub(crate) fn fired(fire: &Fire, now: Timestamp) {
    if fire.is_queued() {
        // It is counted when it is over.
        return;
    }
    counter!("tickwheel_schedule_fires_total", "outcome" => fire.outcome.as_str()).increment(fire.count);
    if fire.reason == FireReason::OnTime {
        histogram!("tickwheel_schedule_fire_lag_seconds").record(now.since(fire.nominal_at));
    }
}

pub(crate) fn schedule_timer(near: usize, catching_up: usize) {
    gauge!("tickwheel_schedules_near").set(near as f64);
    gauge!("tickwheel_schedules_catching_up").set(catching_up as f64);
}

pub(crate) fn run_started() {
    counter!("tickwheel_workflow_runs_started_total").increment(1);
}

pub(crate) fn run_finished(status: RunStatus) {
    counter!("tickwheel_workflow_runs_finished_total", "status" => status.as_str()).increment(1);
}

pub(crate) fn stalled(tasks: u32) {
    counter!("tickwheel_workflow_tasks_stalled_total").increment(u64::from(tasks));
}

/// Tasks that ended without running.
pub(crate) fn tasks_ended(changes: &[(JobId, TaskChange)], ended: &[JobId]) {
    let ended: IdSet<JobId> = ended.iter().copied().collect();
    for (id, change) in changes {
        if let TaskChange::End { state, .. } = change
            && ended.contains(id)
        {
            counter!("tickwheel_jobs_finished_total", "state" => state.as_str()).increment(1);
        }
    }
}

pub(crate) fn dead_letters(count: u64) {
    gauge!("tickwheel_dead_letters").set(count as f64);
}

pub(crate) fn queue(name: &str, waiting: u64, running: u64) {
    gauge!("tickwheel_queue_waiting", "queue" => name.to_owned()).set(waiting as f64);
    gauge!("tickwheel_running", "queue" => name.to_owned()).set(running as f64);
}
