//! "Why has my job not run?", answered for every state.

use crate::job::{Job, TargetKind};
use crate::state::State;
use crate::time::Timestamp;

/// What else has to be known for an answer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Circumstances {
    /// The stop switch is on.
    pub halted: bool,
    /// The job's queue is paused.
    pub queue_paused: bool,
    /// Free places to run it.
    pub slots_free: u64,
    /// Jobs that are due and wait in the same queue.
    pub waiting_in_queue: u64,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Why {
    /// Stable, snake_case.
    pub code: &'static str,
    /// One sentence.
    pub sentence: String,
    /// What it waits for, if for anything.
    pub waits_for: Option<&'static str>,
    /// Since when this is so.
    pub since: Option<Timestamp>,
    /// When it will start, if that is known.
    pub expected_start: Option<Timestamp>,
}

/// Why `job` is not running, or that it is, or how it ended.
pub fn explain(job: &Job, around: Circumstances, now: Timestamp) -> Why {
    match job.state {
        State::Scheduled => explain_scheduled(job, around, now),
        State::Running => explain_running(job),
        State::Dispatched => answer(
            "dispatched",
            "it was handed over and waits for a worker to take it",
            Some("a worker"),
            Some(job.due_at),
        ),
        State::Pending => answer(
            "waits_for_parents",
            "it waits for the jobs it depends on",
            Some("its parents"),
            Some(job.created_at),
        ),
        State::Blocked => answer(
            "parent_failed",
            "a job it depends on failed; retry that one",
            Some("a failed parent"),
            None,
        ),
        State::Paused => {
            answer("paused", "somebody paused it; resume it to let it run", Some("a resume"), None)
        }
        State::Completed => answer("completed", "it has run and completed", None, job.completed_at),
        State::Cancelled => answer("cancelled", "it was cancelled", None, job.completed_at),
        State::Failed => Why {
            sentence: match &job.error {
                Some(error) => format!("it failed and will not be tried again: {}", error.message),
                None => "it failed and will not be tried again".into(),
            },
            ..answer("failed", "", None, job.completed_at)
        },
    }
}

fn explain_scheduled(job: &Job, around: Circumstances, now: Timestamp) -> Why {
    if around.halted {
        return answer(
            "halted",
            "dispatch is halted for the whole system",
            Some("the stop switch"),
            due_since(job, now),
        );
    }
    if around.queue_paused {
        let sentence = format!("its queue {:?} is paused", &*job.queue);
        return Why { sentence, ..answer("queue_paused", "", Some("its queue"), due_since(job, now)) };
    }
    if job.due_at > now {
        return explain_waiting_for_time(job);
    }
    if job.spec.target.kind() == TargetKind::Worker {
        let sentence =
            format!("no worker for type {:?} in queue {:?} is connected", &*job.job_type, &*job.queue);
        return Why { sentence, ..answer("no_worker", "", Some("a worker"), Some(job.due_at)) };
    }
    if around.slots_free == 0 {
        let sentence = format!(
            "every place to run it is taken; {} jobs of its queue are due and waiting",
            around.waiting_in_queue
        );
        return Why { sentence, ..answer("no_free_slot", "", Some("a free slot"), Some(job.due_at)) };
    }
    answer("about_to_start", "it is due and will start in a moment", None, Some(job.due_at))
}

/// A job that could not start anyway waits for the switch only since it is due.
fn due_since(job: &Job, now: Timestamp) -> Option<Timestamp> {
    Some(job.due_at).filter(|due| *due <= now)
}

fn explain_waiting_for_time(job: &Job) -> Why {
    let expected_start = Some(job.due_at);
    if job.retries == 0 {
        let sentence = "its time has not come yet";
        return Why {
            expected_start,
            ..answer("not_yet_due", sentence, Some("its time"), Some(job.created_at))
        };
    }
    let cause = job.error.as_ref().map_or("it failed", |e| e.message.as_str());
    let sentence = format!("attempt {} failed ({cause}); it waits for retry {}", job.attempt, job.retries);
    Why { sentence, expected_start, ..answer("retry_backoff", "", Some("its retry"), job.started_at) }
}

fn explain_running(job: &Job) -> Why {
    let (code, sentence) = match (job.session, job.cancel_requested) {
        (_, true) => ("stopping", "it is running and was asked to stop"),
        (Some(_), false) => ("running", "it is running"),
        (None, false) => ("awaiting_report", "its target accepted it (202) and has not reported yet"),
    };
    answer(code, sentence, None, job.started_at)
}

fn answer(
    code: &'static str,
    sentence: &str,
    waits_for: Option<&'static str>,
    since: Option<Timestamp>,
) -> Why {
    Why { code, sentence: sentence.into(), waits_for, since, expected_start: None }
}
