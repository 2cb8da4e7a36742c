//! "Why has my job not run?", answered for every state.

mod task;

use std::sync::Arc;

use crate::attempt::Failure;
use crate::id::JobId;
use crate::job::{Job, TargetKind};
use crate::matching::{Label, Route};
use crate::settle::DeadReason;
use crate::state::State;
use crate::time::Timestamp;
use crate::worker::WorkerSession;

pub use task::{Awaited, ParentTask, WaitingTask, explain_task};

/// Parents that are named in a sentence; of more, only the number is told.
const PARENTS_NAMED_MAX: usize = 5;

/// What else has to be known for an answer.
#[derive(Clone, Debug, Default)]
pub struct Circumstances {
    /// The stop switch is on.
    pub halted: bool,
    /// The job's queue is paused.
    pub queue_paused: bool,
    /// Since when its run is paused, of a task.
    pub run_paused: Option<Timestamp>,
    /// This server starts no processes.
    pub no_processes: bool,
    /// Free places to run it.
    pub slots_free: u64,
    /// Jobs that are due and wait in the same queue.
    pub waiting_in_queue: u64,
    /// Who could run it. Only a job for workers needs it.
    pub workers: WorkersSeen,
    /// The jobs it depends on, each once. Only a job that waits for them needs them.
    pub parents: Vec<Parent>,
    /// What it waits for as a task of a workflow. Only one that waits needs it.
    pub task: Option<WaitingTask>,
    /// Why it was given up. Only a failed job needs it.
    pub given_up: Option<DeadReason>,
}

/// The workers that have a session, as far as one job is concerned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkersSeen {
    /// All of them.
    pub connected: u64,
    /// Those that serve its queue.
    pub in_queue: u64,
    /// Those of them that have a handler for its type, or the executor for its target.
    pub skilled: u64,
    /// Those of them that offer what it requires.
    pub able: u64,
    /// Those of them that take jobs.
    pub taking: u64,
    /// Their free places.
    pub free_places: u64,
}

impl WorkersSeen {
    /// Counts a worker that runs so many jobs.
    pub fn count(&mut self, worker: &WorkerSession, running: u64, route: &Route) {
        let profile = &worker.profile;
        let steps = [
            (&mut self.connected, true),
            (&mut self.in_queue, profile.queues.contains(&route.queue)),
            (&mut self.skilled, profile.has(&route.skill)),
            (&mut self.able, profile.serves(route)),
            (&mut self.taking, !worker.draining),
        ];
        for (counter, passes) in steps {
            if !passes {
                return;
            }
            *counter += 1;
        }
        self.free_places += u64::from(profile.capacity).saturating_sub(running);
    }
}

/// A job that another one depends on, as far as that matters to the other one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parent {
    /// Which job.
    pub id: JobId,
    /// What kind of work it is.
    pub job_type: Arc<str>,
    /// Where it stands.
    pub state: State,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Why its latest attempt that failed did so.
    pub error: Option<Failure>,
}

impl From<&Job> for Parent {
    fn from(job: &Job) -> Self {
        Self {
            id: job.id,
            job_type: job.job_type.clone(),
            state: job.state,
            ended_at: job.completed_at,
            error: job.error.clone(),
        }
    }
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
    /// Since when this is so, or since when the job waits if nobody wrote that down.
    pub since: Timestamp,
    /// When it will start, if that is known.
    pub expected_start: Option<Timestamp>,
}

/// Why `job` is not running, or that it is, or how it ended.
pub fn explain(job: &Job, context: &Circumstances, now: Timestamp) -> Why {
    if let (State::Pending | State::Blocked, Some(task)) = (job.state, &context.task) {
        return explain_task(task);
    }
    match job.state {
        State::Scheduled => explain_scheduled(job, context, now),
        State::Running => explain_running(job),
        State::Dispatched => answer(
            "dispatched",
            "it was handed over and waits for a worker to take it",
            Some("a worker"),
            job.due_at,
        ),
        State::Pending => explain_pending(job, &context.parents),
        State::Blocked => explain_blocked(job, &context.parents),
        State::Paused => {
            answer("paused", "somebody paused it; resume it to let it run", Some("a resume"), job.created_at)
        }
        State::Completed => answer("completed", "it has run and completed", None, ended(job)),
        State::Cancelled => answer("cancelled", "it was cancelled", None, ended(job)),
        State::Skipped => explain_skipped(job),
        State::Failed => explain_failed(job, context.given_up),
    }
}

fn explain_failed(job: &Job, given_up: Option<DeadReason>) -> Why {
    let how = match given_up {
        Some(DeadReason::RetriesExhausted) => "it failed and has no retries left",
        Some(DeadReason::NotRetryable) => "it failed, and trying again would not help",
        Some(DeadReason::PoisonPill) => {
            "it was given up as poison: it failed too often in too short a time, or took too many workers with it"
        }
        Some(DeadReason::AtMostOnce) => "it failed, and may run at most once",
        None => "it failed and will not be tried again",
    };
    let cause = job.error.as_ref().map(|error| format!(": {}", error.message)).unwrap_or_default();
    Why { sentence: format!("{how}{cause}"), ..answer("failed", "", None, ended(job)) }
}

fn explain_skipped(job: &Job) -> Why {
    let cause = job.error.as_ref().map_or("nobody said why", |error| error.message.as_str());
    Why { sentence: format!("it was skipped: {cause}"), ..answer("skipped", "", None, ended(job)) }
}

fn explain_scheduled(job: &Job, context: &Circumstances, now: Timestamp) -> Why {
    if context.halted {
        return answer(
            "halted",
            "dispatch is halted for the whole system",
            Some("the stop switch"),
            due_since(job, now),
        );
    }
    if context.queue_paused {
        let sentence = format!("its queue {:?} is paused", &*job.queue);
        return Why { sentence, ..answer("queue_paused", "", Some("its queue"), due_since(job, now)) };
    }
    if let Some(since) = context.run_paused {
        return explain_paused_run(since);
    }
    if job.due_at > now {
        return explain_waiting_for_time(job);
    }
    if job.spec.is_for_workers() {
        return explain_waiting_for_worker(job, context.workers);
    }
    if job.spec.target.kind() == TargetKind::Process && context.no_processes {
        let sentence = "this server is not allowed to start processes (--allow-process-targets)";
        return answer(
            "process_not_allowed",
            sentence,
            Some("a server that may start processes"),
            job.due_at,
        );
    }
    if context.slots_free == 0 {
        let sentence = format!(
            "every slot is taken; {} jobs of its queue are due and waiting",
            context.waiting_in_queue
        );
        return Why { sentence, ..answer("no_free_slot", "", Some("a free slot"), job.due_at) };
    }
    answer("about_to_start", "it is due and will start in a moment", None, job.due_at)
}

fn explain_waiting_for_worker(job: &Job, workers: WorkersSeen) -> Why {
    let queue = &*job.queue;
    let skill = match job.spec.target.kind() {
        TargetKind::Http => "the executor for HTTP targets".into(),
        TargetKind::Process => "the executor for commands".into(),
        _ => format!("a handler for type {:?}", &*job.job_type),
    };
    let unroutable = match workers {
        WorkersSeen { connected: 0, .. } => {
            let requires = required(job).map(|labels| format!(" and {labels}")).unwrap_or_default();
            Some(format!("no worker of queue {queue:?} with {skill}{requires} is connected, nor any other"))
        }
        WorkersSeen { in_queue: 0, connected, .. } => {
            Some(format!("none of the {connected} workers that are connected serves its queue {queue:?}"))
        }
        WorkersSeen { skilled: 0, .. } => Some(format!("no worker of queue {queue:?} has {skill}")),
        WorkersSeen { able: 0, .. } => {
            let labels = required(job).unwrap_or_default();
            Some(format!("no worker with {skill} offers what it requires: {labels}"))
        }
        _ => None,
    };
    let waits = |code, sentence| Why { sentence, ..answer(code, "", Some("a worker"), job.due_at) };
    match (unroutable, workers) {
        (Some(sentence), _) => waits("unroutable", sentence),
        (None, WorkersSeen { taking: 0, able, .. }) => waits(
            "workers_draining",
            format!("{able} connected workers can run it, and all of them are draining"),
        ),
        (None, WorkersSeen { free_places: 0, taking, .. }) => waits(
            "no_free_worker",
            format!("{taking} connected workers can run it, and all of their places are taken"),
        ),
        (None, _) => waits("about_to_start", "it is due and goes to the next worker that asks".into()),
    }
}

fn required(job: &Job) -> Option<String> {
    let labels = job.spec.requires.iter().map(|(name, label)| match label {
        Label::Number(_) => format!("{name} of at least {label}"),
        _ => format!("{name} = {label}"),
    });
    Some(labels.collect::<Vec<_>>().join(", ")).filter(|labels| !labels.is_empty())
}

/// Why a task does not start whose run is paused since then.
pub fn explain_paused_run(since: Timestamp) -> Why {
    answer("run_paused", "its run is paused; resume the run to let it start", Some("its run"), since)
}

/// A job waits for the switch since it is due; until then it waits as it did from the beginning.
fn due_since(job: &Job, now: Timestamp) -> Timestamp {
    if job.due_at <= now { job.due_at } else { job.created_at }
}

fn ended(job: &Job) -> Timestamp {
    job.completed_at.unwrap_or(job.created_at)
}

fn explain_waiting_for_time(job: &Job) -> Why {
    let expected_start = Some(job.due_at);
    // Without an error its latest attempt did not fail: it was snoozed.
    let Some(cause) = job.error.as_ref().filter(|_| job.retries > 0).map(|error| &error.message) else {
        let sentence = "its time has not come yet";
        return Why { expected_start, ..answer("not_yet_due", sentence, Some("its time"), job.created_at) };
    };
    let sentence = format!("attempt {} failed ({cause}); it waits for retry {}", job.attempt, job.retries);
    Why { sentence, expected_start, ..answer("retry_backoff", "", Some("its retry"), started(job)) }
}

fn explain_pending(job: &Job, parents: &[Parent]) -> Why {
    let open: Vec<&Parent> = parents.iter().filter(|parent| !parent.state.is_terminal()).collect();
    let sentence = match (open.len(), parents.len()) {
        // They were read after the job, and may have ended in between.
        (0, _) => "it waits for the jobs it depends on".into(),
        (1, 1) => format!("it waits for the job it depends on: {}", named(&open)),
        (waiting, all) => format!("it waits for {waiting} of {all} jobs it depends on: {}", named(&open)),
    };
    Why { sentence, ..answer("waits_for_parents", "", Some("its parents"), job.created_at) }
}

fn explain_blocked(job: &Job, parents: &[Parent]) -> Why {
    let is_bad = |parent: &&Parent| parent.state.is_terminal() && parent.state != State::Completed;
    let bad: Vec<&Parent> = parents.iter().filter(is_bad).collect();
    let sentence = match bad.as_slice() {
        // They were read after the job, and may have been run again in between.
        [] => "a job it depends on failed or was cancelled; retry that one".into(),
        [parent] => {
            let Parent { id, job_type, .. } = parent;
            let end = bad_end(parent);
            format!("job {id} (type {job_type}), which it depends on, {end}; retry that one")
        }
        several => format!(
            "{} of {} jobs it depends on did not complete: {}; retry them",
            several.len(),
            parents.len(),
            named(several)
        ),
    };
    let since = bad.iter().filter_map(|parent| parent.ended_at).min().unwrap_or(job.created_at);
    Why { sentence, ..answer("parent_failed", "", Some("a failed parent"), since) }
}

/// How a job ended that did not complete.
fn bad_end(parent: &Parent) -> String {
    match (parent.state, &parent.error) {
        (State::Cancelled, _) => "was cancelled".into(),
        (_, Some(error)) => format!("failed: {}", error.message),
        (_, None) => "failed".into(),
    }
}

/// The first few with their states, and how many more there are.
fn named(parents: &[&Parent]) -> String {
    let first: Vec<String> = parents
        .iter()
        .take(PARENTS_NAMED_MAX)
        .map(|parent| format!("{} ({})", parent.id, parent.state))
        .collect();
    match parents.len() - first.len() {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

fn explain_running(job: &Job) -> Why {
    let (code, sentence) = match (job.session, job.cancel_requested) {
        (_, true) => ("stopping", "it is running and was asked to stop"),
        (Some(_), false) => ("running", "it is running"),
        (None, false) => ("awaiting_report", "its target accepted it (202) and has not reported yet"),
    };
    answer(code, sentence, None, started(job))
}

fn started(job: &Job) -> Timestamp {
    job.started_at.unwrap_or(job.created_at)
}

fn answer(code: &'static str, sentence: &str, waits_for: Option<&'static str>, since: Timestamp) -> Why {
    Why { code, sentence: sentence.into(), waits_for, since, expected_start: None }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::job::{JobSpec, ProcessTarget, Target};
    use crate::matching::{Amount, Labels};
    use crate::worker::WorkerProfile;

    const NOW: Timestamp = Timestamp::from_millis(1_000);

    fn id(number: u128) -> JobId {
        JobId::from_uuid(Uuid::from_u128(number))
    }

    fn parent(number: u128, state: State) -> Parent {
        let ended_at = state.is_terminal().then(|| Timestamp::from_millis(100 + number as i64));
        let error = (state == State::Failed).then(|| Failure::new("http_status", "it said 500"));
        Parent { id: id(number), job_type: "extract".into(), state, ended_at, error }
    }

    fn why(state: State, parents: Vec<Parent>) -> Why {
        let job = Job { state, ..Job::new(id(99), "load", JobSpec::new(Target::Worker), NOW) };
        explain(&job, &Circumstances { parents, ..Circumstances::default() }, NOW)
    }

    #[test]
    fn a_scheduled_job_waits_for_the_first_thing_that_keeps_it() {
        let due = Job::new(id(99), "load", JobSpec::new(Target::Worker), NOW);
        let later = Job { due_at: Timestamp::from_millis(9_000), ..due.clone() };
        let error = Some(Failure::new("http_status", "it said 500"));
        let retried = Job { retries: 2, attempt: 2, error, ..later.clone() };
        let free = Circumstances { slots_free: 1, ..Circumstances::default() };
        let paused = Circumstances { queue_paused: true, ..free.clone() };
        let halted = Circumstances { halted: true, ..paused.clone() };
        let code = |job: &Job, context: &Circumstances| explain(job, context, NOW).code;
        assert_eq!(code(&due, &halted), "halted");
        assert_eq!(code(&due, &paused), "queue_paused");
        let since = Timestamp::from_millis(500);
        let run_paused = Circumstances { run_paused: Some(since), ..free.clone() };
        assert_eq!((code(&due, &run_paused), code(&later, &run_paused)), ("run_paused", "run_paused"));
        assert_eq!(explain(&due, &run_paused, NOW).since, since);
        assert_eq!(code(&later, &free), "not_yet_due");
        assert_eq!(code(&retried, &free), "retry_backoff");
        let snoozed = Job { error: None, ..retried.clone() };
        assert_eq!(code(&snoozed, &free), "not_yet_due", "that is no failure");
        assert_eq!(code(&due, &free), "unroutable");
        let process = Target::Process(ProcessTarget::default());
        let process = Job::new(id(99), "load", JobSpec::new(process), NOW);
        let no_processes = Circumstances { no_processes: true, ..free.clone() };
        assert_eq!(code(&process, &no_processes), "process_not_allowed");
        assert_eq!(code(&process, &free), "about_to_start");
        assert_eq!(explain(&later, &halted, NOW).since, later.created_at, "it could not start anyway");
        assert_eq!(explain(&due, &halted, NOW).since, NOW);
    }

    #[test]
    fn a_job_for_workers_says_what_nobody_has() {
        let requires =
            Labels::from([("gpu".into(), Label::Flag(true)), ("memory".into(), Label::Number(Amount(16.0)))]);
        let job = Job::new(id(1), "render", JobSpec { requires, ..JobSpec::new(Target::Worker) }, NOW);
        let route = Route::of(&job).unwrap();
        let worker = |queue: &str, job_type: &str, gpu: bool, draining: bool| {
            let labels = [("gpu".into(), Label::Flag(gpu)), ("memory".into(), Label::Number(Amount(32.0)))];
            let profile = WorkerProfile {
                name: "w".into(),
                queues: vec![queue.into()],
                types: vec![job_type.into()],
                executors: Vec::new(),
                labels: labels.into(),
                capacity: 2,
                lease_ms: 15_000,
                library: None,
                host: None,
                pid: None,
            };
            let id = crate::SessionId::from_uuid(Uuid::nil());
            WorkerSession { id, profile: profile.into(), opened_at: NOW, expires_at: NOW, draining }
        };
        let why = |seen: &[(WorkerSession, u64)]| {
            let mut workers = WorkersSeen::default();
            seen.iter().for_each(|(worker, running)| workers.count(worker, *running, &route));
            let why = explain(&job, &Circumstances { workers, ..Circumstances::default() }, NOW);
            (why.code, why.sentence)
        };
        let mut seen = Vec::new();
        let mut next = |worker, running| {
            seen.push((worker, running));
            why(&seen)
        };
        let (code, sentence) = next(worker("other", "render", true, false), 0);
        assert!(code == "unroutable" && sentence.contains("serves its queue \"default\""), "{sentence}");
        let (code, sentence) = next(worker("default", "send", true, false), 0);
        assert!(code == "unroutable" && sentence.contains("handler for type \"render\""), "{sentence}");
        let (code, sentence) = next(worker("default", "render", false, false), 0);
        assert!(
            code == "unroutable" && sentence.ends_with("gpu = true, memory of at least 16"),
            "{sentence}"
        );
        assert_eq!(next(worker("default", "render", true, true), 0).0, "workers_draining");
        assert_eq!(next(worker("default", "render", true, false), 2).0, "no_free_worker");
        assert_eq!(next(worker("default", "render", true, false), 1).0, "about_to_start");
    }

    #[test]
    fn a_command_for_a_worker_says_what_nobody_has() {
        let requires = Labels::from([("site".into(), Label::Text("dmz".into()))]);
        let target = Target::Process(ProcessTarget::default());
        let job = Job::new(id(1), "backup", JobSpec { requires, ..JobSpec::new(target) }, NOW);
        let why = |workers| {
            let here = Circumstances { workers, no_processes: true, ..Circumstances::default() };
            let why = explain(&job, &here, NOW);
            (why.code, why.sentence)
        };
        let nobody = "no worker of queue \"default\" with the executor for commands and site = dmz is connected, nor any other";
        assert_eq!(why(WorkersSeen::default()), ("unroutable", nobody.into()));
        let unskilled = WorkersSeen { connected: 2, in_queue: 1, ..WorkersSeen::default() };
        assert!(why(unskilled).1.ends_with("has the executor for commands"));
        let elsewhere = WorkersSeen { skilled: 1, ..unskilled };
        assert!(why(elsewhere).1.ends_with("offers what it requires: site = dmz"));
        let able = WorkersSeen { able: 1, taking: 1, free_places: 1, ..elsewhere };
        assert_eq!(why(able).0, "about_to_start", "whether this server may start processes does not matter");
    }

    #[test]
    fn a_pending_job_names_those_it_still_waits_for() {
        use State::{Completed, Paused, Running, Scheduled};
        let answer =
            why(State::Pending, vec![parent(1, Running), parent(2, Completed), parent(3, Scheduled)]);
        let (first, third) = (id(1), id(3));
        assert_eq!(
            answer.sentence,
            format!("it waits for 2 of 3 jobs it depends on: {first} (running), {third} (scheduled)")
        );
        assert_eq!((answer.code, answer.waits_for), ("waits_for_parents", Some("its parents")));
        assert_eq!(
            why(State::Pending, vec![parent(1, Paused)]).sentence,
            format!("it waits for the job it depends on: {first} (paused)")
        );
    }

    #[test]
    fn a_sentence_names_a_few_parents_and_counts_the_rest() {
        let many = (0..40).map(|number| parent(number, State::Running)).collect();
        let sentence = why(State::Pending, many).sentence;
        assert!(sentence.starts_with("it waits for 40 of 40 jobs it depends on: "), "{sentence}");
        assert!(sentence.ends_with(&format!("{} (running) and 35 more", id(4))), "{sentence}");
    }

    #[test]
    fn a_blocked_job_says_which_parent_to_retry_and_what_happened_to_it() {
        let failed = why(State::Blocked, vec![parent(1, State::Completed), parent(2, State::Failed)]);
        let second = id(2);
        assert_eq!(
            failed.sentence,
            format!("job {second} (type extract), which it depends on, failed: it said 500; retry that one")
        );
        assert_eq!((failed.code, failed.since), ("parent_failed", Timestamp::from_millis(102)));
        assert_eq!(
            why(State::Blocked, vec![parent(2, State::Cancelled), parent(3, State::Running)]).sentence,
            format!("job {second} (type extract), which it depends on, was cancelled; retry that one")
        );
        let two = why(State::Blocked, vec![parent(1, State::Failed), parent(2, State::Cancelled)]);
        let first = id(1);
        assert_eq!(
            two.sentence,
            format!(
                "2 of 2 jobs it depends on did not complete: {first} (failed), {second} (cancelled); retry them"
            )
        );
        assert_eq!(two.since, Timestamp::from_millis(101), "the first of them blocks");
    }

    #[test]
    fn parents_that_changed_after_the_job_was_read_make_no_false_sentence() {
        let pending = why(State::Pending, vec![parent(1, State::Completed)]);
        assert_eq!(pending.sentence, "it waits for the jobs it depends on");
        let blocked = why(State::Blocked, vec![parent(1, State::Running)]);
        assert_eq!(blocked.sentence, "a job it depends on failed or was cancelled; retry that one");
    }
}
