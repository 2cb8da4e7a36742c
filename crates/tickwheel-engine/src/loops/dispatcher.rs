//! Claims what the planner asks for and runs what it got.
//!
//! A claim that failed for certain is put back. A claim whose answer was lost is in doubt: it may have taken the jobs.
//! They are read again, and those that run under our session in an attempt we did not know before are ours to run. A
//! claim that was still on its way to the store then can take effect later; its jobs are therefore read once more when
//! no statement can be under way any longer.
//!
//! Nothing is claimed while the lease is not trusted: the claim waits for its renewal. So a job can come to be taken
//! and not started only if the lease ran out in between, once a lease at the most; it is then given back as if it had
//! never been taken.
//!
//! Each claim passes the [start gate](crate::start_gate), so nothing starts after somebody was told that it will not.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use tickwheel_core::catch_panic::catch_panic_async;
use tickwheel_core::id::{IdMap, IdSet};
use tickwheel_core::machine::{ClaimRequest, Runner};
use tickwheel_core::ports::{AttemptContext, Claim, Clock, Executor, JobStore, Settled, WorkerStore};
use tickwheel_core::settle::Outcome;
use tickwheel_core::token::{AttemptRef, TokenKey};
use tickwheel_core::{Job, JobId, SessionId, State, TargetKind};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::host::Host;
use crate::lease::Lease;
use crate::loops::planner::PlannerHandle;
use crate::loops::settler::{SettlerHandle, Unsettled};
use crate::metrics;
use crate::payloads::{NoPayload, Payloads};
use crate::running::{Running, RunningAttempt};
use crate::start_gate::{StartGate, StartPass};
use crate::store_watch::StoreWatch;
use crate::worker_board::WorkerBoard;

/// How the loop behaves.
#[derive(Clone, Copy, Debug)]
pub struct DispatcherOptions {
    /// How far past its deadline an attempt may go, whatever its executor does.
    pub deadline_grace: Duration,
    /// No statement is under way in the store for longer than this.
    pub in_doubt_delay: Duration,
    /// After this a job is tried again whose payload could not be put together for now.
    pub payload_pause: Duration,
    /// Bytes of the jobs that a worker is handed at once. One more may exceed them.
    pub answer_bytes_max: usize,
}

impl Default for DispatcherOptions {
    fn default() -> Self {
        Self {
            deadline_grace: Duration::from_secs(2),
            in_doubt_delay: Duration::from_secs(12),
            payload_pause: Duration::from_millis(500),
            answer_bytes_max: 8 << 20,
        }
    }
}

/// See the module.
pub struct Dispatcher {
    pub options: DispatcherOptions,
    pub store: Arc<dyn JobStore>,
    pub sessions: Arc<dyn WorkerStore>,
    pub watch: StoreWatch,
    pub clock: Arc<dyn Clock>,
    pub executors: Arc<HashMap<TargetKind, Arc<dyn Executor>>>,
    pub tokens: TokenKey,
    pub payloads: Payloads,
    pub lease: Arc<Lease>,
    pub gate: StartGate,
    pub running: Running,
    pub workers: WorkerBoard,
    pub planner: PlannerHandle,
    pub settler: SettlerHandle,
    pub host: Host,
    /// Turns true when a shutdown has waited long enough.
    pub release: watch::Receiver<bool>,
}

/// Whom jobs were asked for.
struct Claimant {
    session: SessionId,
    /// If that is a worker: this node.
    claimed_by: Option<SessionId>,
    /// The attempts of those jobs that it had already.
    known: IdMap<JobId, u32>,
}

impl Claimant {
    fn has(&self, job: &Job) -> bool {
        job.state() == State::Running
            && job.session == Some(self.session)
            && self.known.get(&job.id) != Some(&job.attempt)
    }
}

impl Dispatcher {
    /// Runs until the planner is gone.
    pub async fn run(self: Arc<Self>, mut claims: mpsc::Receiver<ClaimRequest>) {
        let mut in_flight = FuturesUnordered::new();
        loop {
            tokio::select! {
                biased;
                Some(()) = in_flight.next(), if !in_flight.is_empty() => {}
                claim = claims.recv() => {
                    let Some(claim) = claim else { break };
                    in_flight.push(self.run_once(claim));
                }
            }
        }
        while in_flight.next().await.is_some() {}
    }

    /// Claims these jobs and starts what it got. Waits while the lease is not trusted.
    pub async fn run_once(self: &Arc<Self>, request: ClaimRequest) {
        // Before the gate: whoever wants to close it must not have to wait for a lease.
        if request.runner == Runner::BuiltIn && !self.lease.trusted().await {
            self.planner.claim_failed(request).await;
            return;
        }
        let pass = self.gate.pass().await;
        let node = self.lease.session();
        let (session, claimed_by, known) = match request.runner {
            Runner::BuiltIn => (node, None, self.running.attempts_of(&request.jobs)),
            Runner::Worker(session) => (session, Some(node), self.workers.attempts_of(&request.jobs)),
        };
        let claim = Claim { session, claimed_by, jobs: request.jobs.clone(), now: self.clock.now() };
        let claimant = Claimant { session, claimed_by, known };
        let asked_at = Instant::now();
        let taken = match self.store.claim(claim).await {
            Ok(jobs) => {
                self.watch.succeeded("claim");
                jobs
            }
            Err(error) if error.is_certainly_aborted() => {
                drop(pass);
                self.watch.wait_after("claim", &error).await;
                let runner = request.runner;
                self.planner.claim_failed(request).await;
                if let Runner::Worker(session) = runner {
                    self.workers.nothing_for(session).await;
                }
                return;
            }
            Err(error) => {
                // Its answer was lost.
                self.watch.failed("claim", &error);
                self.resolve_in_doubt(&request.jobs, claimant).await
            }
        };
        metrics::commit("claim", taken.len(), asked_at.elapsed());
        let ids: IdSet<JobId> = taken.iter().map(|job| job.id).collect();
        let runner = request.runner;
        match runner {
            Runner::BuiltIn => {
                if taken.is_empty() {
                    // Most likely the jobs were changed meanwhile; but a session that has ended claims nothing either.
                    self.lease.request_renewal();
                }
                self.start_all(taken, &pass);
            }
            Runner::Worker(session) => self.hand_over(session, taken).await,
        }
        drop(pass);
        self.planner.claimed(request, ids).await;
        if let Runner::Worker(session) = runner {
            self.ask_again_for(session).await;
        }
    }

    /// Gives a worker that waits what was claimed for it.
    async fn hand_over(&self, session: SessionId, taken: Vec<Job>) {
        let mut ready = Vec::with_capacity(taken.len());
        for job in taken {
            let job = Box::new(job);
            match self.payloads.of(&job).await {
                Ok(payload) => {
                    let reference = AttemptRef { job_id: job.id, attempt: job.attempt };
                    let deadline = job.deadline.unwrap_or_else(|| self.clock.now() + job.spec.timeout());
                    let token = self.tokens.sign(reference);
                    ready.push(AttemptContext { job, payload, token, deadline });
                }
                Err(reason) => self.settle(job, self.without_payload(reason), None).await,
            }
        }
        let started_at = self.clock.now();
        let lags: Vec<Duration> = ready.iter().map(|context| started_at.since(context.job.due_at)).collect();
        let count = ready.len();
        let refused = self.workers.deliver(session, ready, self.options.answer_bytes_max);
        lags[..count - refused.len()].iter().for_each(|lag| metrics::started(*lag));
        for context in refused {
            self.return_to_queue(context.job, "its worker did not wait for it any more", None).await;
        }
    }

    /// A worker that still waits has to be told again that it does. One that waits under a session that has ended
    /// would claim nothing for ever.
    async fn ask_again_for(&self, session: SessionId) {
        if !self.workers.is_waiting(session) {
            return;
        }
        match self.sessions.get_worker(session).await {
            Ok(None) => self.workers.close(session).await,
            Ok(Some(_)) | Err(_) => self.workers.nothing_for(session).await,
        }
    }

    fn without_payload(&self, reason: NoPayload) -> Outcome {
        match reason {
            NoPayload::ForNow(reason) => Outcome::NotSent { reason, again_in: self.options.payload_pause },
            NoPayload::AtAll(failure) => Outcome::Failed { failure, retryable: false, retry_after: None },
        }
    }

    /// What of `asked` is ours after all. Whatever a late statement may still take is looked at again later.
    async fn resolve_in_doubt(self: &Arc<Self>, asked: &[JobId], claimant: Claimant) -> Vec<Job> {
        let ours = self.read_ours(asked, &claimant).await;
        let in_doubt: Vec<JobId> =
            asked.iter().copied().filter(|id| ours.iter().all(|job| job.id != *id)).collect();
        if !in_doubt.is_empty() {
            let later = self.clone();
            self.host.spawn(async move {
                tokio::time::sleep(later.options.in_doubt_delay).await;
                for job in later.read_ours(&in_doubt, &claimant).await {
                    if later.running.contains(job.id) || later.workers.has(job.id) {
                        continue;
                    }
                    tracing::warn!(job_id = %job.id, attempt = job.attempt, "a claim took effect late, job goes back");
                    later.return_to_queue(Box::new(job), "its claim was answered too late", None).await;
                }
            });
        }
        ours
    }

    /// Jobs that run under the claimant's session in an attempt that was not known when they were asked for.
    async fn read_ours(&self, ids: &[JobId], claimant: &Claimant) -> Vec<Job> {
        loop {
            let jobs = match claimant.claimed_by {
                None => self.store.get_jobs(ids.to_vec()).await,
                // Another node may have claimed them for the same worker.
                Some(node) => self.sessions.claimed_by(node, ids.to_vec()).await,
            };
            match jobs {
                Ok(jobs) => {
                    self.watch.succeeded("read");
                    return jobs.into_iter().filter(|job| claimant.has(job)).collect();
                }
                Err(error) => self.watch.wait_after("read", &error).await,
            }
        }
    }

    /// Runs what was taken.
    fn start_all(self: &Arc<Self>, jobs: Vec<Job>, pass: &StartPass) {
        for job in jobs {
            let attempt = self.running.start(job.id, job.attempt, job.queue.clone());
            // Boxed, for it is passed on many times from here to its settlement.
            self.host.spawn(self.clone().run_attempt(Box::new(job), attempt, pass.clone()));
        }
    }

    async fn run_attempt(self: Arc<Self>, mut job: Box<Job>, mut attempt: RunningAttempt, pass: StartPass) {
        let payload = match self.payloads.of(&job).await {
            Ok(payload) => payload,
            Err(reason) => return self.settle(job, self.without_payload(reason), Some(attempt)).await,
        };
        if !self.lease.covers(job.session, Instant::now()) {
            // We stood still between claim and start: the job may be running elsewhere by now.
            tracing::info!(job_id = %job.id, attempt = job.attempt, "the lease ran out before the start, job goes back");
            self.return_to_queue(job, "the server's lease ran out before it was sent", Some(attempt)).await;
            return;
        }
        let started_at = self.clock.now();
        if job.due_at > started_at {
            self.return_to_queue(job, "the clock was set back before it was sent", Some(attempt)).await;
            return;
        }
        if attempt.stop_requested().now_or_never().is_some() {
            // Whoever cancelled it since it was claimed has been answered: nothing starts after that.
            return self.settle(job, Outcome::Cancelled, Some(attempt)).await;
        }
        job.started_at = Some(started_at);
        metrics::started(started_at.since(job.due_at));
        drop(pass);
        let Some(executor) = self.executors.get(&job.spec.target.kind()).cloned() else {
            self.return_to_queue(job, "this server has nobody to run it", Some(attempt)).await;
            return;
        };
        let reference = AttemptRef { job_id: job.id, attempt: job.attempt };
        let deadline = started_at + job.spec.timeout();
        let patience = job.spec.timeout() + self.options.deadline_grace;
        let context = AttemptContext { job, payload, token: self.tokens.sign(reference), deadline };
        let mut release = self.release.clone();
        let outcome = tokio::select! {
            biased;
            // A job that makes its executor panic is like one whose process died, without taking the others with it.
            outcome = catch_panic_async(executor.run(&context)) => outcome.unwrap_or(Outcome::Lost { together: 1 }),
            () = attempt.stop_requested() => Outcome::Cancelled,
            () = tokio::time::sleep(patience) => Outcome::TimedOut,
            _ = release.wait_for(|release| *release) => Outcome::Released,
        };
        attempt.free_slot();
        match outcome {
            Outcome::Accepted => self.await_report(context.job).await,
            outcome => self.settle(context.job, outcome, Some(attempt)).await,
        }
    }

    /// The target took the job and will report by itself: it no longer hangs on this node's lease.
    async fn await_report(&self, job: Box<Job>) {
        loop {
            match self.store.await_report(job.id, job.attempt).await {
                Ok(Settled::Stale) => {
                    tracing::info!(job_id = %job.id, attempt = job.attempt, "accepted, but the attempt was reported or replaced already");
                    return;
                }
                Ok(Settled::Applied) => return self.watch.succeeded("await_report"),
                Ok(Settled::CancelRequested) => {
                    // Somebody wanted it cancelled while it was still ours.
                    self.watch.succeeded("await_report");
                    return self.settle(job, Outcome::Cancelled, None).await;
                }
                Err(error) => self.watch.wait_after("await_report", &error).await,
            }
        }
    }

    /// Nothing of the attempt was sent: the job keeps its place in line.
    async fn return_to_queue(&self, job: Box<Job>, reason: &str, attempt: Option<RunningAttempt>) {
        let outcome = Outcome::NotSent { reason: reason.to_owned(), again_in: Duration::ZERO };
        self.settle(job, outcome, attempt).await;
    }

    async fn settle(&self, job: Box<Job>, outcome: Outcome, attempt: Option<RunningAttempt>) {
        let ended_at = self.clock.now();
        self.settler.settle(Unsettled { job, outcome, ended_at, attempt, answer: None }).await;
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use tickwheel_core::machine::Event;
    use tickwheel_core::ports::SessionStore;
    use tickwheel_testkit::fixtures::{at, job_numbered, session, session_id};
    use tickwheel_testkit::model::Verb;
    use tickwheel_testkit::{Fault, ManualClock, ModelStore};

    use super::*;
    use crate::loops::planner;

    /// Completes everything.
    struct Target;

    #[async_trait]
    impl Executor for Target {
        async fn run(&self, _: &AttemptContext) -> Outcome {
            Outcome::Completed { result: None }
        }
    }

    struct Bench {
        store: Arc<ModelStore>,
        dispatcher: Arc<Dispatcher>,
        job: JobId,
        planner: mpsc::Receiver<planner::Message>,
        unsettled: mpsc::Receiver<Unsettled>,
        _release: watch::Sender<bool>,
    }

    async fn bench() -> Bench {
        let store = Arc::new(ModelStore::new());
        store.open_session(session(1, at(60_000))).await.unwrap();
        let new = job_numbered(1).build_new();
        let job = new.job.id;
        store.submit_jobs(vec![new]).await.unwrap();
        let (_, planner, planner_inbox) = planner::channel([TargetKind::Http].into());
        let (settler, unsettled) = SettlerHandle::new(10);
        let (release, released) = watch::channel(false);
        let target: Arc<dyn Executor> = Arc::new(Target);
        let dispatcher = Dispatcher {
            options: DispatcherOptions::default(),
            store: store.clone(),
            sessions: store.clone(),
            watch: StoreWatch::default(),
            clock: Arc::new(ManualClock::at(at(0))),
            executors: Arc::new(HashMap::from([(TargetKind::Http, target)])),
            tokens: TokenKey::new([7; 32]),
            payloads: Payloads::new(store.clone()),
            lease: Arc::new(Lease::new(session_id(1), Instant::now() + Duration::from_secs(60))),
            gate: StartGate::default(),
            running: Running::default(),
            workers: WorkerBoard::new(planner.clone()),
            planner,
            settler,
            host: Host::default(),
            release: released,
        };
        let dispatcher = Arc::new(dispatcher);
        Bench { store, dispatcher, job, planner: planner_inbox, unsettled, _release: release }
    }

    fn request(jobs: Vec<JobId>) -> ClaimRequest {
        ClaimRequest { runner: Runner::BuiltIn, jobs }
    }

    impl Bench {
        fn answer(&mut self) -> Event {
            match self.planner.try_recv() {
                Ok(planner::Message::Event(event)) => event,
                _ => panic!("the planner was told nothing"),
            }
        }
    }

    #[tokio::test]
    async fn what_was_claimed_runs_and_the_planner_hears_what_was_not() {
        let mut bench = bench().await;
        let gone = job_numbered(2).build().id;
        bench.dispatcher.run_once(request(vec![bench.job, gone])).await;
        let Event::Claimed { claim, taken } = bench.answer() else { panic!("no claim") };
        assert_eq!((claim.jobs, taken.len()), (vec![bench.job, gone], 1));
        let ended = bench.unsettled.recv().await.unwrap();
        assert_eq!((ended.job.id, ended.job.attempt), (bench.job, 1));
        assert!(matches!(ended.outcome, Outcome::Completed { .. }));
    }

    /// It is known to run from its claim on, so nobody who cancels it waits for its start.
    #[tokio::test]
    async fn what_is_cancelled_between_its_claim_and_its_start_is_not_sent() {
        let mut bench = bench().await;
        bench.dispatcher.run_once(request(vec![bench.job])).await;
        bench.dispatcher.running.stop(bench.job);
        let ended = bench.unsettled.recv().await.unwrap();
        assert!(matches!(ended.outcome, Outcome::Cancelled), "{:?}", ended.outcome);
    }

    #[tokio::test]
    async fn a_claim_that_failed_for_certain_is_put_back() {
        let mut bench = bench().await;
        bench.store.fail(Verb::Claim, Fault::Aborted);
        bench.dispatcher.run_once(request(vec![bench.job])).await;
        assert!(matches!(bench.answer(), Event::ClaimFailed(claim) if claim.jobs == [bench.job]));
    }

    #[tokio::test]
    async fn a_claim_whose_answer_was_lost_is_read_again() {
        let mut bench = bench().await;
        bench.store.fail(Verb::Claim, Fault::LostReply);
        bench.dispatcher.run_once(request(vec![bench.job])).await;
        assert!(matches!(bench.answer(), Event::Claimed { taken, .. } if taken.contains(&bench.job)));
        assert_eq!(bench.unsettled.recv().await.unwrap().job.id, bench.job);
    }

    #[tokio::test]
    async fn nothing_is_claimed_under_a_lease_that_was_given_up() {
        let mut bench = bench().await;
        bench.dispatcher.lease.give_up();
        bench.dispatcher.run_once(request(vec![bench.job])).await;
        assert!(matches!(bench.answer(), Event::ClaimFailed(_)));
    }
}
