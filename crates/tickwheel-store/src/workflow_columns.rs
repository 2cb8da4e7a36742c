//! How workflows, runs and their tasks lie in columns, the same in both stores: a definition as one JSON document, the
//! progress of a run a column a fact, a task as the job it is.
//!
//! Invariant: what was encoded here decodes to the same; anything else is [`StoreError::Corrupt`], never a panic.
//! Deliberately not here: SQL and the types of either database's driver.
//!
//! [`StoreError::Corrupt`]: tickwheel_core::ports::StoreError::Corrupt

use std::ops::RangeInclusive;
use std::sync::Arc;

use tickwheel_core::parents::Parents;
use tickwheel_core::ports::StoreResult;
use tickwheel_core::workflow::{
    FIRST_INDEX, ReconcileRequest, Run, RunProgress, RunStatus, RunTask, TASK_ERROR_BYTES_MAX,
    TASK_ERRORS_BYTES_MAX, TaskError, Workflow, WorkflowSpec,
};
use tickwheel_core::{JobId, JsonText, RunId, State, Timestamp};
use uuid::Uuid;

use crate::columns::{
    decode_code, decode_count, decode_fan_out, decode_partition, decode_position, decode_state,
};
use crate::error::corrupt;
use crate::schedule_columns::{decode_number, encode_number};

/// So many characters of a task's error are read where all of them are too much: enough to know whether there are more
/// bytes than are kept.
pub(crate) const ERROR_CHARS_READ: i32 = TASK_ERROR_BYTES_MAX as i32 + 1;

/// More bytes of errors than this in a run are too much.
pub(crate) const ERRORS_BYTES_MAX: i64 = TASK_ERRORS_BYTES_MAX as i64;

/// The ids of all jobs that a run has or may have.
pub(crate) fn task_ids(run: RunId) -> RangeInclusive<JobId> {
    JobId::of_task(run, FIRST_INDEX)..=JobId::of_task(run, RunId::TASK_INDEX_MAX)
}

/// A version of a workflow as a row has it, borrowed from the row.
#[derive(Debug)]
pub(crate) struct WorkflowColumns<'row> {
    pub tenant: &'row str,
    pub name: &'row str,
    pub version: i64,
    pub created_at: i64,
    pub spec: &'row str,
}

impl WorkflowColumns<'_> {
    /// The workflow they stand for.
    pub fn decode(&self) -> StoreResult<Workflow> {
        let spec = decode_workflow_spec(self.spec);
        let what = || format!("version {} of the workflow {}", self.version, self.name);
        Ok(Workflow {
            tenant: self.tenant.into(),
            name: self.name.into(),
            version: decode_count("version of a workflow", self.version)?,
            created_at: Timestamp::from_millis(self.created_at),
            spec: Arc::new(spec.map_err(|cause| corrupt(&what(), cause))?),
        })
    }
}

/// The spec as JSON text.
pub(crate) fn encode_workflow_spec(spec: &WorkflowSpec) -> String {
    serde_json::to_string(spec).expect("a spec has only string keys and finite numbers")
}

/// Whether a stored spec says the same. One that cannot be read says something else: a new version takes its place.
pub(crate) fn is_same_spec(stored: &str, spec: &WorkflowSpec) -> bool {
    decode_workflow_spec(stored).is_ok_and(|stored| stored == *spec)
}

fn decode_workflow_spec(text: &str) -> serde_json::Result<WorkflowSpec> {
    serde_json::from_str(text)
}

/// A run as a row has it, borrowed from the row.
#[derive(Debug)]
pub(crate) struct RunColumns<'row> {
    pub id: Uuid,
    pub partition: i64,
    pub tenant: &'row str,
    pub workflow: &'row str,
    pub version: i64,
    pub created_at: i64,
    pub job_id: Option<Uuid>,
    pub total: i64,
    pub open: i64,
    pub had_failure: bool,
    pub revision: i64,
    pub input: &'row str,
    pub progress: RunProgressColumns,
}

impl RunColumns<'_> {
    /// The run they stand for.
    pub fn decode(&self) -> StoreResult<Run> {
        Ok(Run {
            id: RunId::from_uuid(self.id),
            partition: decode_partition(self.partition)?,
            tenant: self.tenant.into(),
            workflow: self.workflow.into(),
            version: decode_count("version of a run", self.version)?,
            input: JsonText::from_checked(self.input),
            job_id: self.job_id.map(JobId::from_uuid),
            created_at: Timestamp::from_millis(self.created_at),
            total: decode_count("jobs of a run", self.total)?,
            open: decode_count("open jobs of a run", self.open)?,
            had_failure: self.had_failure,
            revision: decode_number("revision of a run", self.revision)?,
            progress: self.progress.decode()?,
        })
    }
}

/// How far a run has come: numbers of an enum, of jobs, and milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunProgressColumns {
    pub status: i16,
    pub cancel_requested: bool,
    pub ended_at: Option<i64>,
    pub paused_at: Option<i64>,
    pub next_index: i64,
    pub after_first: Option<i64>,
    pub blocked: i64,
    pub stalled: i64,
    pub stalls_at: Option<i64>,
    pub data_bytes: i64,
}

impl From<&RunProgress> for RunProgressColumns {
    fn from(progress: &RunProgress) -> Self {
        Self {
            status: progress.status.code(),
            cancel_requested: progress.cancel_requested,
            ended_at: progress.ended_at.map(Timestamp::as_millis),
            paused_at: progress.paused_at.map(Timestamp::as_millis),
            next_index: progress.next_index.into(),
            after_first: progress.after_first.map(i64::from),
            blocked: progress.blocked.into(),
            stalled: progress.stalled.into(),
            stalls_at: progress.stalls_at.map(Timestamp::as_millis),
            data_bytes: encode_number(progress.data_bytes),
        }
    }
}

impl RunProgressColumns {
    fn decode(&self) -> StoreResult<RunProgress> {
        let number = |number| decode_count("number of a run's job", number);
        Ok(RunProgress {
            status: decode_code("status of a run", self.status.into(), RunStatus::from_code)?,
            cancel_requested: self.cancel_requested,
            ended_at: self.ended_at.map(Timestamp::from_millis),
            paused_at: self.paused_at.map(Timestamp::from_millis),
            next_index: number(self.next_index)?,
            after_first: self.after_first.map(number).transpose()?,
            blocked: decode_count("blocked jobs of a run", self.blocked)?,
            stalled: decode_count("stalled jobs of a run", self.stalled)?,
            stalls_at: self.stalls_at.map(Timestamp::from_millis),
            data_bytes: decode_number("bytes of a run's data", self.data_bytes)?,
        })
    }
}

/// A job of a run as a row has it, borrowed from the row.
#[derive(Debug)]
pub(crate) struct TaskColumns<'row> {
    pub id: Uuid,
    pub job_type: &'row str,
    pub state: i64,
    pub due_at: i64,
    pub spec: &'row str,
    pub attempt: i64,
    pub started_at: Option<i64>,
    pub cancel_requested: bool,
    pub completed_at: Option<i64>,
    pub error_code: Option<&'row str>,
    /// [`ERROR_CHARS_READ`] characters of it, if `error_bytes` are too many.
    pub error_message: Option<&'row str>,
    /// Of the errors of all tasks together.
    pub error_bytes: i64,
    pub open_parents: i64,
    pub failed_parents: i64,
    pub fan_out: Option<&'row str>,
}

impl TaskColumns<'_> {
    /// The task they stand for; `None`: the job is no task of a run.
    pub fn decode(&self) -> StoreResult<Option<RunTask>> {
        let job_id = JobId::from_uuid(self.id);
        let Some(position) = decode_position(self.spec, job_id)? else { return Ok(None) };
        Ok(Some(RunTask {
            job_id,
            position,
            state: decode_state(self.state)?,
            job_type: self.job_type.into(),
            parents: Parents {
                open: decode_count("open_parents", self.open_parents)?,
                failed: decode_count("failed_parents", self.failed_parents)?,
            },
            attempt: decode_count("attempt", self.attempt)?,
            due_at: Timestamp::from_millis(self.due_at),
            started_at: self.started_at.map(Timestamp::from_millis),
            completed_at: self.completed_at.map(Timestamp::from_millis),
            cancel_requested: self.cancel_requested,
            error: self.error_code.map(|code| {
                TaskError::of(code, self.error_message.unwrap_or_default(), self.error_bytes.unsigned_abs())
            }),
            fan_out: self.fan_out.map(decode_fan_out).transpose()?,
        }))
    }
}

/// A reconcile request.
pub(crate) fn decode_reconcile_request(id: Uuid, times: i64) -> StoreResult<ReconcileRequest> {
    Ok(ReconcileRequest {
        id: JobId::from_uuid(id),
        times: decode_number("times of a reconcile request", times)?,
    })
}

/// The state that stands, in a callback about a run, for how the run stands.
pub(crate) const fn state_of(status: RunStatus) -> State {
    match status {
        RunStatus::Running => State::Running,
        RunStatus::Completed => State::Completed,
        RunStatus::Failed => State::Failed,
        RunStatus::Cancelled => State::Cancelled,
        RunStatus::Paused => State::Paused,
    }
}

#[cfg(test)]
mod tests {
    use tickwheel_core::ports::StoreError;
    use tickwheel_testkit::fixtures::{run, workflow};

    use super::*;

    #[test]
    fn a_run_is_the_range_of_its_tasks_and_nothing_else() {
        let run = run().build().run.id;
        let ids = task_ids(run);
        assert!(!ids.contains(&ReconcileRequest::id_of_run(run)), "number zero is the run itself");
        assert!(ids.contains(&JobId::of_task(run, 1)) && ids.contains(&JobId::of_task(run, 1_048_575)));
    }

    #[test]
    fn a_spec_is_the_same_only_if_it_says_the_same() {
        let workflow = workflow("etl").build();
        let text = encode_workflow_spec(&workflow.spec);
        assert!(is_same_spec(&text, &workflow.spec));
        let spaced = text.replacen(':', " : ", 1);
        assert!(is_same_spec(&spaced, &workflow.spec), "however it is written");
        let other =
            WorkflowSpec { description: Some("another".into()), ..WorkflowSpec::clone(&workflow.spec) };
        assert!(!is_same_spec(&text, &other));
        assert!(!is_same_spec("{}", &workflow.spec), "what cannot be read is something else");
    }

    #[test]
    fn progress_survives_and_numbers_that_were_never_written_are_corrupt() {
        let progress = RunProgress {
            after_first: Some(9),
            ended_at: Some(Timestamp::from_millis(7)),
            ..run().build().run.progress
        };
        let columns = RunProgressColumns::from(&progress);
        assert_eq!(columns.decode().expect("sound"), progress);
        for odd in [
            RunProgressColumns { status: 99, ..columns },
            RunProgressColumns { blocked: -1, ..columns },
            RunProgressColumns { after_first: Some(-1), ..columns },
        ] {
            assert!(matches!(odd.decode(), Err(StoreError::Corrupt(_))), "{odd:?}");
        }
    }
}
