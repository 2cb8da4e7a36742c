//! Workers: processes that ask for jobs, run them, and report.
//!
//! A worker registers, polls for jobs, sends heartbeats while it has some, reports how they ended, and leaves. Every
//! call can be repeated: an answer that was lost loses no job and doubles none.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::attempt::ReportedError;
use crate::document;
use crate::job::{Job, Status, words};
use crate::problem::Problem;
use crate::time::{Span, Time};

/// The version of the worker protocol that this server speaks.
pub const PROTOCOL: u32 = 1;

/// The answer of `GET /api/v1/server`: what a library has to know before it uses anything else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServerInfo {
    /// The version of the server.
    pub version: String,
    /// The versions of the worker protocol that it speaks.
    pub worker_protocol: ProtocolRange,
    /// What it can do beyond the first version.
    pub features: Vec<String>,
}

/// A range of protocol versions. Both ends are included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProtocolRange {
    /// The oldest.
    pub min: u32,
    /// The newest.
    pub max: u32,
}

/// The value of a label: a flag, a number or a text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Label {
    /// `"gpu": true`. A job that requires a flag needs exactly that value.
    Flag(bool),
    /// `"memory_gib": 16`. A job that requires a number needs at least as much.
    Number(#[serde(serialize_with = "as_written")] f64),
    /// `"zone": "eu-1"`. A job that requires a text needs exactly that text.
    Text(String),
}

impl Label {
    /// The label that somebody wrote in a variable or on a command line.
    pub fn read(text: &str) -> Self {
        match text {
            "true" => Self::Flag(true),
            "false" => Self::Flag(false),
            text => match text.parse::<f64>() {
                Ok(number) if number.is_finite() => Self::Number(number),
                _ => Self::Text(text.to_owned()),
            },
        }
    }
}

/// `16` and not `16.0`.
fn as_written<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() < EXACT_MAX {
        serializer.serialize_i64(*number as i64)
    } else {
        serializer.serialize_f64(*number)
    }
}

/// Labels by name.
pub type Labels = BTreeMap<String, Label>;

words! {
    /// A kind of target that a worker can run by itself.
    ExecutorKind {
        /// It calls HTTP targets.
        Http = "http",
        /// It runs commands.
        Process = "process",
    }
}

/// A worker that wants to run jobs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RegisterWorker {
    /// A name for people. Several workers may share it.
    #[schema(value_type = document::Name, example = "mailer")]
    pub name: String,
    /// The queues that it serves. Default: `default`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<document::Name>>, min_items = 1, max_items = 1000)]
    pub queues: Option<Vec<String>>,
    /// The types of jobs that it has a handler for. At least one, unless it has `executors`.
    #[schema(value_type = Vec<document::Name>, max_items = 1000, example = json!(["send_email"]))]
    pub types: Vec<String>,
    /// The built-in executors that it has: it runs jobs with a target of these kinds that require labels which it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min_items = 1, max_items = 2)]
    pub executors: Option<Vec<ExecutorKind>>,
    /// How many jobs it runs at once. Default 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 100_000)]
    pub capacity: Option<u32>,
    /// What it has to offer to jobs with `requires`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::Labels>)]
    pub labels: Option<Labels>,
    /// The version of the worker protocol that it speaks. Default 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1000)]
    pub protocol: Option<u32>,
    /// The library it is written with, and its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::Name>, example = "python/0.1.0")]
    pub library: Option<String>,
    /// A UUID that this process made for itself. Registering again with the same one is the same session, so that a
    /// registration whose answer was lost can be repeated.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::JobId>)]
    pub instance: Option<String>,
    /// How long its jobs stay its own when it falls silent: 5 s to 10 min. Default: as configured, 15 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease: Option<Span>,
    /// The machine it is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::Name>)]
    pub host: Option<String>,
    /// Its process id.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0)]
    pub pid: Option<u32>,
}

/// A session was opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RegisteredWorker {
    /// The session: part of the address of all other calls.
    pub worker_id: String,
    /// How long its jobs stay its own when it falls silent.
    pub lease: Span,
    /// How often it should send a heartbeat.
    pub heartbeat_interval: Span,
    /// How long a poll waits if it does not say.
    pub poll_wait: Span,
    /// How large its requests may be.
    pub limits: WorkerLimits,
}

/// The bounds of a worker's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkerLimits {
    /// Jobs in the answer to a poll.
    pub poll_jobs: u64,
    /// Reports in a request.
    pub reports: u64,
    /// Bytes of a request.
    pub report_bytes: u64,
    /// Bytes of a result.
    pub result_bytes: u64,
    /// Bytes of a line of a log.
    pub log_line_bytes: u64,
    /// Bytes of the log of an attempt.
    pub log_bytes: u64,
}

/// A worker asks for jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PollWorker {
    /// How many jobs it has room for. 0 asks only for `cancel`, `lost` and `drain`. Default 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1_000_000)]
    pub max: Option<u32>,
    /// How long to wait for a job: up to 60 s. Default: `poll_wait`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<Span>,
    /// The number of this poll. The same number again gets the same jobs again; a higher one says that the last answer
    /// has arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0)]
    pub seq: Option<u64>,
    /// At most so many jobs of these types.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::Slots>)]
    pub slots: Option<BTreeMap<String, u32>>,
}

/// The answer to a poll.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct PolledJobs {
    /// The jobs that the worker is to run now. They are its own already.
    pub jobs: Vec<Assignment>,
    /// The number of the poll, if it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// Tokens of attempts that somebody wants stopped.
    pub cancel: Vec<String>,
    /// Tokens of attempts that are not the worker's own any more.
    pub lost: Vec<String>,
    /// The worker is to finish what it has and take nothing new.
    pub drain: bool,
}

/// A job that a worker is to run.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Assignment {
    /// The job, with its payload.
    pub job: Job,
    /// The number of this attempt.
    pub attempt: u32,
    /// Names this attempt in every report. Whoever has it may report on the attempt, and on nothing else.
    pub token: String,
    /// Grows with every attempt of the job, so that others can tell an old attempt from a new one.
    pub fencing_token: u32,
    /// When the attempt must have ended, by the server's clock.
    pub deadline: Time,
    /// How long that is from now on.
    pub deadline_in: Span,
    /// The trace that the job belongs to (W3C trace context).
    pub traceparent: Option<String>,
}

words! {
    /// What a worker is doing.
    WorkerState {
        /// It takes jobs.
        Active = "active",
        /// It finishes what it has and takes nothing new.
        Draining = "draining",
    }
}

/// A worker is alive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkerHeartbeat {
    /// News about attempts. May be empty: a heartbeat renews all that the worker has.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_items = 1000)]
    pub attempts: Option<Vec<AttemptProgress>>,
    /// How many attempts it has whose report was not accepted yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0)]
    pub held: Option<u64>,
    /// The tokens of all of them: after `resync`, or to be sure.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_items = 100_000)]
    pub tokens: Option<Vec<String>>,
    /// What it is doing. Default `active`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<WorkerState>,
    /// How many of its slots are taken by handlers that do not end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0)]
    pub stuck: Option<u64>,
}

/// How far an attempt has come.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AttemptProgress {
    /// Which attempt.
    pub token: String,
    /// How much of it is done, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 100)]
    pub progress: Option<f64>,
    /// What it is doing, in words. What is longer than 255 characters is cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The answer to a heartbeat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkerHeartbeatAnswer {
    /// Tokens of attempts that somebody wants stopped.
    pub cancel: Vec<String>,
    /// Tokens of attempts that are not the worker's own any more.
    pub lost: Vec<String>,
    /// How long its jobs stay its own from now on.
    pub lease: Span,
    /// The worker is to finish what it has and take nothing new.
    pub drain: bool,
    /// The server counts other attempts than the worker: send `tokens` with the next heartbeat.
    pub resync: bool,
}

words! {
    /// How an attempt ended, in the words of its worker.
    ReportedOutcome {
        /// The work is done.
        Completed = "completed",
        /// The work was not done.
        Failed = "failed",
        /// Not yet: run it again after `delay`. Costs no retry.
        Snoozed = "snoozed",
        /// It stopped because the server asked it to.
        Cancelled = "cancelled",
        /// Given back, for example because the worker shuts down. Costs no retry.
        Released = "released",
        /// Nothing of it was done, for a reason of the worker's own. The job goes back, after `delay` if there is one,
        /// as if it had not been tried; also one that may run at most once.
        NotStarted = "not_started",
        /// Somebody else took the work and will report by itself, with the token. The worker has it no more.
        Accepted = "accepted",
    }
}

/// The end of an attempt.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AttemptReport {
    /// Which attempt.
    pub token: String,
    /// How it ended.
    pub outcome: ReportedOutcome,
    /// The result of a completed one: any JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub result: Option<Box<RawValue>>,
    /// Why one failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ReportedError>,
    /// Whether a retry could help one that failed. Default `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
    /// How long to wait before the job runs again: at least that long after a failure, exactly that long after
    /// `snoozed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Span>,
    /// How long the handler ran, by the worker's own clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ran: Option<Span>,
    /// The last lines of its log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logs: Option<ReportedLines>,
}

/// The ends of attempts, up to 1,000.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportAttempts {
    /// The ends.
    #[schema(max_items = 1000)]
    pub reports: Vec<AttemptReport>,
}

/// The answer to reports: one per report, in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReportResults {
    /// The answers.
    pub results: Vec<ReportResult>,
}

/// The answer to one report: it was accepted, now or before, or it is rejected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum ReportResult {
    /// Accepted.
    Accepted(AcceptedReport),
    /// Rejected: nothing was changed.
    Rejected(RejectedReport),
}

/// An accepted report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AcceptedReport {
    /// Always `accepted`.
    pub status: Accepted,
    /// The state of the job afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_status: Option<Status>,
}

words! {
    /// A report was accepted.
    Accepted {
        /// It was.
        Accepted = "accepted",
    }
}

/// A rejected report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RejectedReport {
    /// Why.
    pub error: Problem,
}

/// Lines of the logs of attempts, up to 1,000 attempts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AppendLogs {
    /// The lines, by attempt.
    #[schema(max_items = 1000)]
    pub logs: Vec<AttemptLines>,
}

/// Lines of the log of an attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AttemptLines {
    /// Which attempt.
    pub token: String,
    /// The number of the first line, beginning with 0 in each attempt. A line that was sent before is not added again.
    #[schema(minimum = 0, maximum = 1_000_000_000_000_i64)]
    pub first: u64,
    /// The lines, numbered from there on.
    #[schema(max_items = 10_000)]
    pub lines: Vec<ReportedLine>,
}

/// Lines of a log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportedLines {
    /// The number of the first line, beginning with 0 in each attempt. A line that was sent before is not added again.
    #[schema(minimum = 0, maximum = 1_000_000_000_000_i64)]
    pub first: u64,
    /// The lines, numbered from there on.
    #[schema(max_items = 10_000)]
    pub lines: Vec<ReportedLine>,
}

/// A line of a log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportedLine {
    /// How long ago it was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age: Option<Span>,
    /// How much it matters. Default `info`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<LogLevel>,
    /// The text. A line of more than 16 KiB, with its fields, is cut.
    pub message: String,
    /// Facts beside the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub fields: Option<serde_json::Map<String, serde_json::Value>>,
}

words! {
    /// How much a line of a log matters.
    LogLevel {
        /// For whoever looks for a fault.
        Debug = "debug",
        /// What happened. The default.
        Info = "info",
        /// Something is odd.
        Warn = "warn",
        /// Something went wrong.
        Error = "error",
    }
}

/// A worker, as the list of workers shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Worker {
    /// Its session.
    pub id: String,
    /// Its name.
    pub name: String,
    /// What it is doing.
    pub state: WorkerState,
    /// The queues that it serves.
    pub queues: Vec<String>,
    /// The types that it has a handler for.
    pub types: Vec<String>,
    /// The built-in executors that it has.
    #[serde(default)]
    pub executors: Vec<ExecutorKind>,
    /// What it offers to jobs with `requires`.
    #[schema(value_type = document::Labels)]
    pub labels: Labels,
    /// How many jobs it runs at once.
    pub capacity: u32,
    /// How many it has now.
    pub running: u64,
    /// How many of its slots are taken by handlers that do not end.
    pub stuck: u64,
    /// When it registered.
    pub registered_at: Time,
    /// When it was last heard of.
    pub last_seen: Time,
    /// When it last asked this server for jobs. `null` if it has not yet.
    pub last_poll: Option<Time>,
    /// When its jobs go to others unless it is heard of.
    pub lease_ends_at: Time,
    /// How long its lease is.
    pub lease: Span,
    /// The library it is written with.
    pub library: Option<String>,
    /// The machine it is on.
    pub host: Option<String>,
    /// Its process id.
    pub pid: Option<u32>,
}

/// An attempt that a worker has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HeldAttempt {
    /// The job.
    #[schema(value_type = document::JobId)]
    pub job_id: String,
    /// Its type.
    #[serde(rename = "type")]
    pub job_type: String,
    /// The number of the attempt.
    pub attempt: u32,
    /// When it started.
    pub started_at: Option<Time>,
    /// When it must have ended.
    pub deadline: Option<Time>,
}

/// One worker with what it runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WorkerDetails {
    /// The worker.
    #[serde(flatten)]
    pub worker: Worker,
    /// What it runs: the first 1,000.
    pub attempts: Vec<HeldAttempt>,
}
