//! What goes over the wire: requests, answers and problems, and the rules that make a request acceptable.
//!
//! Shared by the API, the clients and the command line, so that all of them say the same words. Every request type refuses
//! unknown fields; every rule that can be checked without the store is checked here and reported with a JSON pointer.
//!
//! Deliberately not here: HTTP itself, and anything of the domain. This crate uses nothing of ours.

pub mod admin;
pub mod attempt;
pub mod backfill;
pub mod calendar;
pub mod callback;
pub mod canonical;
pub mod cron;
pub mod dead_letter;
pub mod document;
pub mod job;
pub mod limits;
pub mod local_time;
pub mod page;
pub mod pointer;
pub mod problem;
pub mod process;
pub mod queue;
pub mod retry;
pub mod schedule;
pub mod strict_json;
pub mod target;
pub mod time;
pub mod validate;
pub mod webhook;
pub mod why;
pub mod worker;
pub mod workflow;
pub mod workflow_graph;

pub use admin::SystemStatus;
pub use attempt::{
    AskOnce, Attempt, CompleteAttempt, FailAttempt, HeartbeatAnswer, HeartbeatAttempt, JobError, LogLine,
    OnceAbandon, OnceAnswer, OnceDone, OnceScope, OnceState,
};
pub use backfill::{Backfill, BackfillPreview, BackfillSchedule, BackfillStatus, BackfillWait};
pub use calendar::{Calendar, CalendarImport, CalendarSummary, PutCalendar, Weekday};
pub use callback::{Callback, CallbackTry};
pub use cron::{ClockChange, CronPreview, DayLogic, DstFold, DstGap, PreviewCron, ZoneChange};
pub use dead_letter::{DeadLetter, Redrive, RedriveFilter, RedriveProgress, RedriveStatus};
pub use job::{
    BatchItem, BatchResult, BatchSubmit, Delivery, Job, PatchJob, Priority, ReadBatch, Status, SubmitJob,
};
pub use limits::Limits;
pub use local_time::LocalTime;
pub use page::List;
pub use problem::{Code, FieldError, Problem};
pub use queue::Queue;
pub use retry::{Backoff, Retry};
pub use schedule::{
    Fire, FireOutcome, Missed, MissedPolicy, NextFire, OnExcluded, Overlap, PatchSchedule, PauseSchedule,
    PlannedSchedule, PutSchedule, Schedule, SchedulePreview, SubmitSchedule, TriggerSchedule,
};
pub use target::{FanOutTarget, HttpTarget, ProcessTarget, Target, WorkerTarget, WorkflowTarget};
pub use time::{Span, Time};
pub use why::Why;
pub use worker::{
    AppendLogs, Assignment, AttemptLines, AttemptProgress, AttemptReport, ExecutorKind, HeldAttempt, Label,
    Labels, PollWorker, PolledJobs, RegisterWorker, RegisteredWorker, ReportAttempts, ReportResult,
    ReportResults, ReportedOutcome, ServerInfo, Worker, WorkerDetails, WorkerHeartbeat,
    WorkerHeartbeatAnswer, WorkerLimits, WorkerState,
};
pub use workflow::{
    CompleteTask, DataPath, Notify, OnFailure, RunEvent, RunItems, RunStatus, RunTask, StartRun,
    SubmitWorkflow, TaskJob, TriggerRule, Workflow, WorkflowRun, WorkflowSchedule, WorkflowSummary,
    WorkflowTask,
};
