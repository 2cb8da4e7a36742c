//! What people do to a job: cancel, pause, resume, edit, run now, run again.
//!
//! Pure: the job before and the wish in, the job after out. The stores read, apply and write in one transaction, so a
//! change is either acknowledged and in force, or refused.

use crate::attempt::AttemptOutcome;
use crate::job::{Job, JsonText, Priority, Target};
use crate::parents::NOT_UNTIL_RELEASED;
use crate::settle::{self, Burst};
use crate::state::{Event, IllegalTransition, State, transition};
use crate::time::Timestamp;

/// A wish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Do not run it; if it is running, ask it to stop.
    Cancel,
    /// Hold it until resumed.
    Pause,
    /// Let a held job go on.
    Resume,
    /// Run it now instead of later.
    RunNow,
    /// Run an ended job again, perhaps with another payload.
    Revive {
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
    /// `true` holds it, `false` lets it go.
    pub paused: Option<bool>,
}

/// The job after the change. Wishes that are already fulfilled (cancelling a cancelled job) change nothing.
pub fn apply(job: &Job, change: &Change, now: Timestamp) -> Result<Job, IllegalTransition> {
    let mut job = job.clone();
    refuse_parts(&job, change)?;
    match change {
        Change::Cancel => cancel(&mut job, now)?,
        Change::Pause => pause(&mut job)?,
        Change::Resume => resume(&mut job)?,
        Change::RunNow => run_now(&mut job, now)?,
        Change::Revive { payload } => revive(&mut job, payload.as_ref(), now)?,
        Change::Edit(edit) => apply_edit(&mut job, edit, now)?,
    }
    Ok(job)
}

/// What stands for its parts changes with them only.
fn refuse_parts(job: &Job, change: &Change) -> Result<(), IllegalTransition> {
    let event = match (&job.spec.target, change) {
        (Target::Parts, Change::Cancel) => Event::Cancelled,
        (Target::Parts, Change::Edit(_)) => Event::Edited,
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
            job.state = transition(job.state, Event::Cancelled)?;
            job.completed_at = Some(now);
            job.last_outcome = None;
        }
    }
    Ok(())
}

/// Nobody here is at work on it, so there is nobody to wait for: whoever is hears of it when asking, or in vain.
pub(crate) fn cancel_elsewhere(job: &mut Job, now: Timestamp) -> Result<(), IllegalTransition> {
    job.state = transition(job.state, Event::Cancelled)?;
    job.completed_at = Some(now);
    job.last_outcome = Some(AttemptOutcome::Cancelled);
    job.error = Some(settle::cancelled());
    Ok(())
}

fn pause(job: &mut Job) -> Result<(), IllegalTransition> {
    if job.state != State::Paused {
        job.state = transition(job.state, Event::Paused)?;
    }
    Ok(())
}

fn resume(job: &mut Job) -> Result<(), IllegalTransition> {
    if job.state != State::Scheduled {
        job.state = transition(job.state, Event::Resumed)?;
    }
    Ok(())
}

fn run_now(job: &mut Job, now: Timestamp) -> Result<(), IllegalTransition> {
    job.state = transition(job.state, Event::Hurried)?;
    job.due_at = job.due_at.min(now);
    Ok(())
}

fn revive(job: &mut Job, payload: Option<&JsonText>, now: Timestamp) -> Result<(), IllegalTransition> {
    job.state = transition(job.state, Event::Revived)?;
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
    // A task that has run once was let go by the conductor then; one that has not is his to look at.
    if job.spec.place.is_some() {
        // Its parts that are still to be made are waited for like those that have not ended.
        job.parents.open += job.fan_out().map_or(0, |parts| parts.unmade);
        if job.attempt == 0 {
            job.state = transition(job.state, Event::Linked)?;
            job.due_at = NOT_UNTIL_RELEASED;
        }
        return Ok(());
    }
    // Its parents may have been run again, or not have ended, since.
    if !job.parents.are_done() {
        job.state = job.parents.first_state();
        job.due_at = NOT_UNTIL_RELEASED;
    }
    Ok(())
}

fn apply_edit(job: &mut Job, edit: &Edit, now: Timestamp) -> Result<(), IllegalTransition> {
    job.state = transition(job.state, Event::Edited)?;
    if let Some(at) = edit.execute_at {
        job.execute_at = at;
        // A time in the past means now, as it does for a new job. One that waits for others gets its time when they are done.
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
