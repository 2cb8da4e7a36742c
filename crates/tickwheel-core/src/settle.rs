//! What follows from the end of an attempt: the pure decision between done, again and never again.
//!
//! An [`Outcome`] is what was observed; a [`Settlement`] is what the store is to write, valid only while the job is
//! still running that very attempt. The decision is taken from the job as it was claimed; the one thing that may have
//! changed since, a request to cancel, is checked again by the store in the same transaction.

use std::sync::Arc;
use std::time::Duration;

use crate::attempt::{AttemptOutcome, AttemptRecord, Failure};
use crate::id::JobId;
use crate::job::{Delivery, Job, JobSpec, JsonText};
use crate::parents::Parents;
use crate::retry::Jitter;
use crate::state::{JobEvent, State, transition};
use crate::time::Timestamp;
use crate::words::words;
use crate::workflow::TaskPosition;

/// The longest `Retry-After` that is honoured: a target cannot park a job for years.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 3600);

/// What was seen of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The work is done, perhaps with an answer.
    Completed {
        /// The target's answer.
        result: Option<JsonText>,
    },
    /// The work was not done.
    Failed {
        /// Why.
        failure: Failure,
        /// Whether trying again could help.
        retryable: bool,
        /// When the target wants to be asked again.
        retry_after: Option<Duration>,
    },
    /// It did not end in time.
    TimedOut,
    /// Its worker is gone.
    Lost {
        /// How many attempts went with that worker, this one included.
        together: usize,
    },
    /// It stopped because it was asked to.
    Cancelled,
    /// The server that ran it is shutting down and gave it back.
    Released,
    /// Nothing of it reached the target, for a reason of our own (no lease, no file descriptor): it is as if it had not
    /// been tried.
    NotSent {
        /// Why, in words.
        reason: String,
        /// How long to wait before the job may be taken again. Zero: it keeps its place in line.
        again_in: Duration,
    },
    /// The target took it and will report by itself (HTTP 202).
    Accepted,
    /// It cannot do its work yet and asks to run again later: that is no failure and costs no retry.
    Snoozed {
        /// How long it wants to wait.
        again_in: Duration,
    },
}

/// A lost attempt counts against its job if so many were lost with the same worker at the most. Alone means alone: a
/// job that was not alone may have been a bystander, and nobody can tell it from the one that did it. (An HTTP target
/// cannot take a server down at all.)
const LOST_TOGETHER_MAX: usize = 1;

/// Consecutive failures that follow each other quickly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Burst {
    /// When the first of them happened.
    pub started_at: Option<Timestamp>,
    /// How many there were.
    pub failures: u32,
}

impl Burst {
    /// The burst after another failure at `at`.
    pub fn after_failure(self, at: Timestamp, window: Duration) -> Self {
        match self.started_at {
            Some(start) if at.since(start) <= window => {
                Self { started_at: Some(start), failures: self.failures.saturating_add(1) }
            }
            _ => Self { started_at: Some(at), failures: 1 },
        }
    }
}

/// When a job counts as poison and gets no more attempts, whatever its retry policy says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoisonRule {
    /// This many failures …
    pub failures_max: u32,
    /// … within this time.
    pub window: Duration,
    /// This many attempts that were lost with their worker while it ran nothing else.
    pub lost_max: u32,
}

impl Default for PoisonRule {
    fn default() -> Self {
        Self { failures_max: 10, window: Duration::from_secs(60), lost_max: 5 }
    }
}

words! {
    /// Why a job was given up.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum DeadReason {
        /// It used up its retries.
        RetriesExhausted = "retries_exhausted",
        /// Its failure cannot be mended by trying again.
        NotRetryable = "not_retryable",
        /// It failed too often in too short a time, or was alone on too many workers that died.
        PoisonPill = "poison_pill",
        /// It may run at most once, and that once is over.
        AtMostOnce = "at_most_once",
    }
}

/// What becomes of the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Completed.
    Complete {
        /// The target's answer.
        result: Option<JsonText>,
    },
    /// Failed for good: a dead letter.
    Fail {
        /// Why there is no other attempt.
        reason: DeadReason,
    },
    /// Cancelled.
    Cancel,
    /// Scheduled once more.
    Again {
        /// When.
        due_at: Timestamp,
        /// The retries used, this one included.
        retries: u32,
        /// The attempts lost alone, this one included.
        lost: u32,
        /// The failures in quick succession, this one included.
        burst: Burst,
    },
    /// Scheduled as it was before the attempt, of which nothing is recorded. Its number is used up, for it is a fencing
    /// token.
    ReturnToQueue {
        /// When it may be taken again.
        due_at: Timestamp,
    },
}

impl Next {
    /// What happens to the job.
    const fn event(&self) -> JobEvent {
        match self {
            Self::Complete { .. } => JobEvent::Succeeded,
            Self::Fail { .. } => JobEvent::GaveUp,
            Self::Cancel => JobEvent::Cancelled,
            Self::Again { .. } => JobEvent::RetryPlanned,
            Self::ReturnToQueue { .. } => JobEvent::Returned,
        }
    }

    /// The state the job is in afterwards.
    pub fn state(&self) -> State {
        transition(State::Running, self.event())
            .expect("a running job may complete, fail, be cancelled or go again")
    }

    /// When the job may be taken again, if it waits for that.
    pub const fn due_again_at(&self) -> Option<Timestamp> {
        match self {
            Self::Again { due_at, .. } | Self::ReturnToQueue { due_at } => Some(*due_at),
            Self::Complete { .. } | Self::Fail { .. } | Self::Cancel => None,
        }
    }
}

/// The end of one attempt, as the store is to write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// Whose attempt.
    pub job_id: JobId,
    /// Its number: the settlement changes nothing unless the job is running exactly this one.
    pub attempt: u32,
    /// When it really started.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Timestamp,
    /// How it ended.
    pub outcome: AttemptOutcome,
    /// Why, if not well.
    pub error: Option<Failure>,
    /// What becomes of the job.
    pub next: Next,
    /// The spec: who is to be told of the end, and who waits for it.
    pub spec: Arc<JobSpec>,
}

impl Settlement {
    /// Where to send the outcome once the job has ended.
    pub fn callback_url(&self) -> Option<&str> {
        self.spec.callback_url.as_deref()
    }

    /// The position in a run of a workflow, of a task.
    pub fn position(&self) -> Option<&TaskPosition> {
        self.spec.position.as_ref()
    }
}

impl Job {
    /// The running job after the settlement of its attempt. One that returns to the queue is as it was before the
    /// attempt: the one before that, if there was one, started at `previous_start`.
    #[must_use]
    pub fn settled(self, settlement: &Settlement, previous_start: Option<Timestamp>) -> Self {
        let mut job = self;
        job.undergo(settlement.next.event()).expect("only a running job is settled");
        match &settlement.next {
            Next::ReturnToQueue { due_at } => {
                (job.due_at, job.started_at) = (*due_at, previous_start);
                (job.session, job.deadline) = (None, None);
            }
            Next::Again { due_at, retries, lost, burst } => {
                (job.due_at, job.retries, job.lost, job.burst) = (*due_at, *retries, *lost, *burst);
                (job.session, job.deadline) = (None, None);
                job.started_at = Some(settlement.started_at);
                job.error.clone_from(&settlement.error);
            }
            Next::Complete { .. } | Next::Fail { .. } | Next::Cancel => job.end_with(settlement),
        }
        job
    }

    fn end_with(&mut self, settlement: &Settlement) {
        self.started_at = Some(settlement.started_at);
        self.completed_at = Some(settlement.ended_at);
        self.last_outcome = Some(settlement.outcome);
        (self.result, self.error) = match &settlement.next {
            // A completed job has no error, even if an earlier attempt had one.
            Next::Complete { result } => (result.clone(), None),
            _ => (None, settlement.error.clone()),
        };
        // Parents are counted while a job waits for them.
        self.parents = Parents::default();
    }
}

/// What follows from `outcome`. `Outcome::Accepted` has no settlement: the attempt goes on elsewhere.
pub fn decide(
    job: &Job,
    outcome: Outcome,
    now: Timestamp,
    rule: &PoisonRule,
    jitter: Jitter,
) -> Option<Settlement> {
    let (attempt_outcome, error, next) = match outcome {
        Outcome::Accepted => return None,
        Outcome::Completed { result } => (AttemptOutcome::Completed, None, Next::Complete { result }),
        Outcome::Cancelled => (AttemptOutcome::Cancelled, Some(cancelled()), Next::Cancel),
        Outcome::Released => (AttemptOutcome::Released, Some(released()), after_release(job, now)),
        Outcome::NotSent { reason, again_in } => {
            // The words are for a job that is to be cancelled: one that goes back shows nothing of it.
            let error = Some(Failure::new("not_sent", reason));
            (AttemptOutcome::Released, error, return_to_queue(job, again_in, now))
        }
        Outcome::Lost { together } => {
            (AttemptOutcome::Lost, Some(worker_lost()), after_loss(job, together, now, rule))
        }
        Outcome::Snoozed { again_in } => {
            let next = after_snooze(job, again_in, now);
            // A job that goes on has no error; one that ends here says why.
            let ends = job.cancel_requested || matches!(next, Next::Fail { .. });
            (AttemptOutcome::Snoozed, ends.then(|| snoozed(again_in)), next)
        }
        Outcome::TimedOut => {
            let failure = timed_out(job);
            let next = after_failure(job, &failure, true, None, now, rule, jitter);
            (AttemptOutcome::TimedOut, Some(failure), next)
        }
        Outcome::Failed { failure, retryable, retry_after } => {
            let next = after_failure(job, &failure, retryable, retry_after, now, rule, jitter);
            (AttemptOutcome::Failed, Some(failure), next)
        }
    };
    // A job that somebody wants stopped gets no further attempt; one that completed all the same has completed.
    let next = match next {
        Next::Again { .. } | Next::ReturnToQueue { .. } | Next::Fail { .. } if job.cancel_requested => {
            Next::Cancel
        }
        next => next,
    };
    Some(Settlement {
        job_id: job.id,
        attempt: job.attempt,
        started_at: job.started_at.unwrap_or(now),
        ended_at: now,
        outcome: attempt_outcome,
        error,
        next,
        spec: job.spec.clone(),
    })
}

fn after_failure(
    job: &Job,
    failure: &Failure,
    retryable: bool,
    retry_after: Option<Duration>,
    now: Timestamp,
    rule: &PoisonRule,
    jitter: Jitter,
) -> Next {
    if job.spec.delivery == Delivery::AtMostOnce {
        return Next::Fail { reason: DeadReason::AtMostOnce };
    }
    if !retryable || job.spec.retry.forbids(failure) {
        return Next::Fail { reason: DeadReason::NotRetryable };
    }
    let burst = job.burst.after_failure(now, rule.window);
    let retries = job.retries + 1;
    let Some(delay) = job.spec.retry.delay(retries, jitter) else {
        return Next::Fail { reason: DeadReason::RetriesExhausted };
    };
    if burst.failures >= rule.failures_max {
        return Next::Fail { reason: DeadReason::PoisonPill };
    }
    let delay = delay.max(retry_after.unwrap_or_default().min(RETRY_AFTER_MAX));
    Next::Again { due_at: now + delay, retries, lost: job.lost, burst }
}

fn after_loss(job: &Job, together: usize, now: Timestamp, rule: &PoisonRule) -> Next {
    if job.spec.delivery == Delivery::AtMostOnce {
        return Next::Fail { reason: DeadReason::AtMostOnce };
    }
    let is_to_blame = together <= LOST_TOGETHER_MAX;
    let lost = job.lost + u32::from(is_to_blame);
    if is_to_blame && lost >= rule.lost_max {
        return Next::Fail { reason: DeadReason::PoisonPill };
    }
    Next::Again { due_at: now, retries: job.retries, lost, burst: job.burst }
}

/// A server that shuts down gives back what it could not finish. Only what may run twice goes back.
fn after_release(job: &Job, now: Timestamp) -> Next {
    if job.spec.delivery == Delivery::AtMostOnce {
        return Next::Fail { reason: DeadReason::AtMostOnce };
    }
    Next::Again { due_at: now, retries: job.retries, lost: job.lost, burst: job.burst }
}

/// A job that asks to run again later does, and nothing is counted against it.
fn after_snooze(job: &Job, again_in: Duration, now: Timestamp) -> Next {
    if job.spec.delivery == Delivery::AtMostOnce {
        return Next::Fail { reason: DeadReason::AtMostOnce };
    }
    Next::Again { due_at: now + again_in, retries: job.retries, lost: job.lost, burst: job.burst }
}

/// What was never sent may go again however it is to be delivered, and does not count as a try.
fn return_to_queue(job: &Job, again_in: Duration, now: Timestamp) -> Next {
    let due_at = if again_in.is_zero() { job.due_at } else { now + again_in };
    Next::ReturnToQueue { due_at }
}

/// Why an attempt ended that somebody wanted to end.
pub(crate) fn cancelled() -> Failure {
    Failure::new("cancelled", "cancelled while running")
}

/// Whether an attempt of the job that is over ended as somebody reports now. Whoever reports may not have heard that it
/// was recorded.
pub fn is_reported_again(job: &Job, ended: &AttemptRecord, outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Completed { result } => {
            ended.outcome == Some(AttemptOutcome::Completed)
                && ended.number == job.attempt
                && job.result == *result
        }
        Outcome::Failed { failure, .. } => {
            ended.outcome == Some(AttemptOutcome::Failed) && ended.error.as_ref() == Some(failure)
        }
        _ => false,
    }
}

fn timed_out(job: &Job) -> Failure {
    Failure::new("timed_out", format!("no result within the timeout of {} ms", job.spec.timeout_ms))
}

fn worker_lost() -> Failure {
    Failure::new("worker_lost", "the process that ran this attempt died or was cut off")
}

fn snoozed(again_in: Duration) -> Failure {
    Failure::new("snoozed", format!("asked to run again in {} ms", again_in.as_millis()))
}

fn released() -> Failure {
    Failure::new("released", "the server shut down before this attempt ended")
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::id::{JobId, SessionId};
    use crate::job::{HttpTarget, JobSpec, Target};
    use crate::retry::{Backoff, RetryPolicy};

    const NOW: Timestamp = Timestamp::from_millis(1_000_000);

    fn running() -> Job {
        let target = HttpTarget { url: "http://a/".into(), method: "POST".into(), headers: Vec::new() };
        let retry = RetryPolicy {
            max_retries: 3,
            backoff: Backoff::Fixed,
            initial_delay_ms: 100,
            max_delay_ms: 1_000,
            jitter: 0.0,
            non_retryable: vec!["card_*".into()],
        };
        let spec = JobSpec { retry, ..JobSpec::new(Target::Http(target)) };
        let id = JobId::from_uuid(Uuid::from_u128(1));
        let session = Some(SessionId::from_uuid(Uuid::from_u128(2)));
        let started_at = Some(Timestamp::EPOCH);
        let new_job = Job::new(id, "t", spec, Timestamp::EPOCH);
        Job { state: State::Running, attempt: 1, session, started_at, ..new_job }
    }

    fn failed(retryable: bool, retry_after: Option<Duration>) -> Outcome {
        Outcome::Failed { failure: Failure::new("http_status", "500"), retryable, retry_after }
    }

    fn snoozed_for(seconds: u64) -> Outcome {
        Outcome::Snoozed { again_in: Duration::from_secs(seconds) }
    }

    fn next(job: &Job, outcome: Outcome) -> Next {
        decide(job, outcome, NOW, &PoisonRule::default(), Jitter::NONE).expect("it has ended").next
    }

    fn dead(reason: DeadReason) -> Next {
        Next::Fail { reason }
    }

    #[test]
    fn a_failure_uses_up_a_retry_and_waits_for_it() {
        let again = next(&running(), failed(true, None));
        let Next::Again { due_at, retries, lost, burst } = again else { panic!("{again:?}") };
        assert_eq!((due_at, retries, lost), (NOW + Duration::from_millis(100), 1, 0));
        assert_eq!(burst, Burst { started_at: Some(NOW), failures: 1 });
    }

    #[test]
    fn some_failures_are_not_retried_because_the_job_says_so() {
        let failed = |code: &str| Outcome::Failed {
            failure: Failure::new(code, "declined"),
            retryable: true,
            retry_after: None,
        };
        assert_eq!(next(&running(), failed("card_expired")), dead(DeadReason::NotRetryable));
        assert!(matches!(next(&running(), failed("bank_closed")), Next::Again { .. }));
        assert!(matches!(next(&running(), Outcome::TimedOut), Next::Again { .. }));
        let mut once = running();
        Arc::make_mut(&mut once.spec).retry.non_retryable = vec!["timed_out".into()];
        assert_eq!(next(&once, Outcome::TimedOut), dead(DeadReason::NotRetryable));
        assert!(
            matches!(next(&once, Outcome::Lost { together: 3 }), Next::Again { .. }),
            "that is nobody's fault"
        );
    }

    #[test]
    fn a_report_is_the_same_if_it_says_the_same_of_the_same_attempt() {
        let result = |text: &str| Some(JsonText::from_checked(text));
        let record = |number, outcome, error| AttemptRecord {
            number,
            started_at: NOW,
            ended_at: Some(NOW),
            outcome: Some(outcome),
            error,
        };
        let job = Job { attempt: 2, state: State::Completed, result: result("1"), ..running() };
        let last = record(2, AttemptOutcome::Completed, None);
        assert!(is_reported_again(&job, &last, &Outcome::Completed { result: result("1") }));
        assert!(!is_reported_again(&job, &last, &Outcome::Completed { result: result("2") }));
        assert!(!is_reported_again(&job, &last, &Outcome::Completed { result: None }));
        assert!(!is_reported_again(&job, &last, &failed(true, None)));
        let first = record(1, AttemptOutcome::Failed, Some(Failure::new("http_status", "500")));
        assert!(is_reported_again(&job, &first, &failed(true, None)), "although another one followed");
        assert!(!is_reported_again(&job, &first, &Outcome::Completed { result: result("1") }));
        let lost = record(1, AttemptOutcome::Lost, Some(worker_lost()));
        assert!(!is_reported_again(&job, &lost, &failed(true, None)));
    }

    #[test]
    fn the_last_retry_is_the_last() {
        let job = Job { retries: 3, ..running() };
        assert_eq!(next(&job, failed(true, None)), dead(DeadReason::RetriesExhausted));
        assert_eq!(next(&job, Outcome::TimedOut), dead(DeadReason::RetriesExhausted));
    }

    #[test]
    fn what_trying_again_cannot_mend_is_not_tried_again() {
        assert_eq!(next(&running(), failed(false, None)), dead(DeadReason::NotRetryable));
    }

    #[test]
    fn a_target_can_ask_for_more_time_but_not_for_years() {
        let due = |after| match next(&running(), failed(true, Some(Duration::from_secs(after)))) {
            Next::Again { due_at, .. } => due_at.since(NOW),
            other => panic!("{other:?}"),
        };
        assert_eq!(due(7), Duration::from_secs(7));
        assert_eq!(due(0), Duration::from_millis(100), "never sooner than the policy says");
        assert_eq!(due(1_000_000_000), RETRY_AFTER_MAX);
    }

    #[test]
    fn quick_failures_make_a_job_poison_and_slow_ones_do_not() {
        let rule = PoisonRule::default();
        let mut burst = Burst::default();
        for number in 0..rule.failures_max - 1 {
            burst = burst.after_failure(NOW + Duration::from_millis(u64::from(number)), rule.window);
        }
        let mut job = Job { burst, ..running() };
        std::sync::Arc::make_mut(&mut job.spec).retry.max_retries = 100;
        assert_eq!(next(&job, failed(true, None)), dead(DeadReason::PoisonPill));
        job.burst.started_at = Some(NOW - rule.window - Duration::from_millis(1));
        assert!(matches!(next(&job, failed(true, None)), Next::Again { .. }));
    }

    #[test]
    fn a_lost_attempt_costs_no_retry_until_it_has_taken_too_many_workers() {
        let alone = Outcome::Lost { together: 1 };
        let again = next(&running(), alone.clone());
        assert!(matches!(again, Next::Again { due_at: NOW, retries: 0, lost: 1, .. }), "{again:?}");
        let job = Job { lost: 4, ..running() };
        assert_eq!(next(&job, alone), dead(DeadReason::PoisonPill));
        let again = next(&job, Outcome::Lost { together: 2 });
        assert!(
            matches!(again, Next::Again { due_at: NOW, lost: 4, .. }),
            "nobody knows which it was: {again:?}"
        );
    }

    #[test]
    fn a_snooze_waits_as_long_as_it_asks_and_counts_for_nothing() {
        let burst = Burst { started_at: Some(NOW), failures: 9 };
        let job = Job { retries: 3, lost: 4, burst, error: Some(worker_lost()), ..running() };
        let decided = decide(&job, snoozed_for(600), NOW, &PoisonRule::default(), Jitter::NONE).unwrap();
        let due_at = NOW + Duration::from_secs(600);
        assert_eq!(decided.next, Next::Again { due_at, retries: 3, lost: 4, burst });
        assert_eq!((decided.outcome, &decided.error), (AttemptOutcome::Snoozed, &None));
        let job = job.settled(&decided, None);
        assert_eq!((job.state(), job.due_at, job.error), (State::Scheduled, due_at, None));
    }

    #[test]
    fn a_job_that_ends_with_a_snooze_says_so() {
        let mut once = running();
        Arc::make_mut(&mut once.spec).delivery = Delivery::AtMostOnce;
        for job in [once, Job { cancel_requested: true, ..running() }] {
            let decided = decide(&job, snoozed_for(2), NOW, &PoisonRule::default(), Jitter::NONE).unwrap();
            let error = Failure::new("snoozed", "asked to run again in 2000 ms");
            assert_eq!((decided.outcome, decided.error), (AttemptOutcome::Snoozed, Some(error)));
        }
    }

    #[test]
    fn at_most_once_means_one_attempt_however_it_ended() {
        let mut job = running();
        std::sync::Arc::make_mut(&mut job.spec).delivery = Delivery::AtMostOnce;
        for outcome in [
            failed(true, None),
            Outcome::TimedOut,
            Outcome::Lost { together: 2 },
            Outcome::Released,
            snoozed_for(1),
        ] {
            assert_eq!(next(&job, outcome.clone()), dead(DeadReason::AtMostOnce), "{outcome:?}");
        }
        assert_eq!(next(&job, Outcome::Completed { result: None }), Next::Complete { result: None });
    }

    #[test]
    fn what_was_never_sent_goes_back_as_it_was_however_it_is_to_be_delivered() {
        let not_sent = |again_in| Outcome::NotSent { reason: "no file descriptor".into(), again_in };
        for delivery in [Delivery::AtLeastOnce, Delivery::AtMostOnce] {
            let mut job = Job { retries: 3, lost: 4, ..running() };
            std::sync::Arc::make_mut(&mut job.spec).delivery = delivery;
            assert_eq!(next(&job, not_sent(Duration::ZERO)), Next::ReturnToQueue { due_at: job.due_at });
            let later = Next::ReturnToQueue { due_at: NOW + Duration::from_secs(1) };
            assert_eq!(next(&job, not_sent(Duration::from_secs(1))), later);
        }
        let job = Job { cancel_requested: true, ..running() };
        assert_eq!(next(&job, not_sent(Duration::ZERO)), Next::Cancel);
    }

    #[test]
    fn a_job_that_is_to_stop_gets_no_other_attempt_but_may_have_completed() {
        let job = Job { cancel_requested: true, ..running() };
        for outcome in [
            failed(true, None),
            failed(false, None),
            Outcome::Lost { together: 1 },
            Outcome::Cancelled,
            snoozed_for(1),
        ] {
            assert_eq!(next(&job, outcome.clone()), Next::Cancel, "{outcome:?}");
        }
        assert_eq!(next(&job, Outcome::Completed { result: None }), Next::Complete { result: None });
    }

    #[test]
    fn an_accepted_attempt_is_not_over() {
        assert_eq!(decide(&running(), Outcome::Accepted, NOW, &PoisonRule::default(), Jitter::NONE), None);
    }

    #[test]
    fn a_settled_job_is_where_the_decision_leaves_it() {
        let answer = Some(JsonText::from_checked("1"));
        let decided =
            |outcome| decide(&running(), outcome, NOW, &PoisonRule::default(), Jitter::NONE).unwrap();
        let done = decided(Outcome::Completed { result: answer.clone() });
        let job = Job { error: Some(cancelled()), ..running() }.settled(&done, None);
        assert_eq!((job.state(), job.completed_at), (State::Completed, Some(NOW)));
        assert_eq!((job.result, job.error), (answer, None), "the error was of an earlier attempt");

        let again = decided(failed(true, None));
        let job = running().settled(&again, None);
        assert_eq!((job.state(), job.session, job.retries), (State::Scheduled, None, 1));
        assert_eq!(Some(job.due_at), again.next.due_again_at());

        let reason = "no file".to_owned();
        let not_sent = decided(Outcome::NotSent { reason, again_in: Duration::ZERO });
        let before = Some(Timestamp::from_millis(7));
        let job = running().settled(&not_sent, before);
        assert_eq!(
            (job.state(), job.started_at, job.error),
            (State::Scheduled, before, None),
            "as before it"
        );
    }
}
