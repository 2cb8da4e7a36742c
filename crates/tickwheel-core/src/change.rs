//! What people do to a job: cancel, pause, resume, edit, run now, retry.
//!
//! Pure: the job before and the change in, the job after out. The stores read, apply and write in one transaction, so a
//! change is either acknowledged and in force, or refused.

use crate::attempt::AttemptOutcome;
use crate::job::{Job, JsonText, Priority, Target};
use crate::parents::NOT_UNTIL_RELEASED;
use crate::settle::{self, Burst};
use crate::state::{IllegalTransition, JobEvent, State};
use crate::time::Timestamp;

/// A change that somebody asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Do not run it; if it is running, ask it to stop.
    Cancel,
    /// Pause it until it is resumed.
    Pause,
    /// Resume a paused job.
    Resume,
    /// Run it now instead of later.
    RunNow,
    /// Retry an ended job by hand, perhaps with another payload. It starts over with all its retries; a retry by its
    /// policy is no change but a consequence of its attempt (`settle`).
    Retry {
        /// Replaces the payload.
        payload: Option<JsonText>,
    },
    /// Change a job that has not started.
    Edit(Edit),
}

/// New values for a job that has not started; what is `None` stays.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Edit {
    /// When to run.
    pub execute_at: Option<Timestamp>,
    /// How urgent.
    pub priority: Option<Priority>,
    /// With which data.
    pub payload: Option<JsonText>,
    /// Under which labels.
    pub tags: Option<Vec<String>>,
    /// `true` holds it, `false` resumes it.
    pub paused: Option<bool>,
}

/// The job after the change. One that is in force already (cancelling a cancelled job) changes nothing.
pub fn apply(job: &Job, change: &Change, now: Timestamp) -> Result<Job, IllegalTransition> {
    let mut job = job.clone();
    refuse_fan_out(&job, change)?;
    match change {
        Change::Cancel => cancel(&mut job, now)?,
        Change::Pause => pause(&mut job)?,
        Change::Resume => resume(&mut job)?,
        Change::RunNow => run_now(&mut job, now)?,
        Change::Retry { payload } => retry(&mut job, payload.as_ref(), now)?,
        Change::Edit(edit) => apply_edit(&mut job, edit, now)?,
    }
    Ok(job)
}

/// A fan-out changes with its items only.
fn refuse_fan_out(job: &Job, change: &Change) -> Result<(), IllegalTransition> {
    let event = match (&job.spec.target, change) {
        (Target::FanOut, Change::Cancel) => JobEvent::Cancelled,
        (Target::FanOut, Change::Edit(_)) => JobEvent::Edited,
        _ => return Ok(()),
    };
    Err(IllegalTransition { state: job.state, event })
}

fn cancel(job: &mut Job, now: Timestamp) -> Result<(), IllegalTransition> {
    match job.state {
        State::Cancelled => {}
        State::Running if job.awaits_report() => cancel_elsewhere(job, now)?,
        State::Running => job.cancel_requested = true,
        _ => {
            job.undergo(JobEvent::Cancelled)?;
            job.completed_at = Some(now);
            job.last_outcome = None;
        }
    }
    Ok(())
}

/// Nobody here is at work on it, so there is nobody to wait for: whoever is hears of it when asking, or in vain.
pub(crate) fn cancel_elsewhere(job: &mut Job, now: Timestamp) -> Result<(), IllegalTransition> {
    job.undergo(JobEvent::Cancelled)?;
    job.completed_at = Some(now);
    job.last_outcome = Some(AttemptOutcome::Cancelled);
    job.error = Some(settle::cancelled());
    Ok(())
}

fn pause(job: &mut Job) -> Result<(), IllegalTransition> {
    if job.state != State::Paused {
        job.undergo(JobEvent::Paused)?;
    }
    Ok(())
}

fn resume(job: &mut Job) -> Result<(), IllegalTransition> {
    if job.state != State::Scheduled {
        job.undergo(JobEvent::Resumed)?;
    }
    Ok(())
}

fn run_now(job: &mut Job, now: Timestamp) -> Result<(), IllegalTransition> {
    job.undergo(JobEvent::RunNow)?;
    job.due_at = job.due_at.min(now);
    Ok(())
}

fn retry(job: &mut Job, payload: Option<&JsonText>, now: Timestamp) -> Result<(), IllegalTransition> {
    job.undergo(JobEvent::Retried)?;
    if let Some(payload) = payload {
        job.payload = payload.clone().into();
    }
    job.due_at = now;
    job.retries = 0;
    job.lost = 0;
    job.burst = Burst::default();
    job.session = None;
    job.deadline = None;
    job.cancel_requested = false;
    job.completed_at = None;
    job.last_outcome = None;
    job.result = None;
    // A task that has run once was released by the reconciler then. The reconciler decides about one that has not.
    if job.spec.position.is_some() {
        // Its items that are still to be made are waited for like those that have not ended.
        job.parents.open += job.fan_out.map_or(0, |fan_out| fan_out.unmade);
        if job.attempt == 0 {
            job.hold()?;
        }
        return Ok(());
    }
    // Its parents may have been run again, or not have ended, since.
    job.hold_for_parents()
}

fn apply_edit(job: &mut Job, edit: &Edit, now: Timestamp) -> Result<(), IllegalTransition> {
    job.undergo(JobEvent::Edited)?;
    if let Some(at) = edit.execute_at {
        job.execute_at = at;
        // A time in the past means now, as it does for a new job. One that waits for others gets its time when they are
        // done.
        if job.due_at != NOT_UNTIL_RELEASED {
            job.due_at = at.max(now);
        }
    }
    job.priority = edit.priority.unwrap_or(job.priority);
    if let Some(payload) = &edit.payload {
        job.payload = payload.clone().into();
    }
    if let Some(tags) = &edit.tags {
        job.tags.clone_from(tags);
    }
    match edit.paused {
        Some(true) => pause(job),
        Some(false) => resume(job),
        None => Ok(()),
    }
}
