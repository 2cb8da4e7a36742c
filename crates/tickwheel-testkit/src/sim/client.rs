//! What clients do: submit (twice, if the answer got lost), change their minds, stop the world and let it go on.

use std::time::Duration;

use rand::RngExt;
use tickwheel_core::change::{Change, Edit};
use tickwheel_core::machine::Event;
use tickwheel_core::ports::{Changed, Creation, DueJob, NewJob, UnknownParent};
use tickwheel_core::retry::{Backoff, RetryPolicy};
use tickwheel_core::{Delivery, Job, JobId, Priority, State};

use super::injected::FaultKind;
use super::world::{ToNode, World};
use super::{TIMEOUT, Violation};
use crate::fixtures::job_numbered;

pub(super) const QUEUES: [&str; 2] = ["default", "reports"];
const TENANTS: [&str; 3] = ["a", "b", "c"];
/// How the type of a job begins that a client has asked for; what follows is the number of the request, however often
/// it is sent.
pub(super) const REQUEST: &str = "request-";
/// How the type of a job ends that takes the process with it that runs it.
pub(super) const DEADLY: &str = "-deadly";

impl World {
    /// One client does one thing.
    pub(super) fn client_acts(&mut self) -> Result<(), Violation> {
        if self.chance(25) {
            return self.client_uses_schedules();
        }
        if self.chance(12) {
            return self.client_uses_workflows();
        }
        match self.rng.random_range(0..100) {
            0..50 => self.submit(),
            50..85 => self.change_some_job(),
            85..92 => self.turn_stop_switch(),
            _ => self.pause_some_queue(),
        }
        Ok(())
    }

    /// At the end everything that was held is released.
    pub(super) fn let_everything_go(&mut self) -> Result<(), Violation> {
        self.set_halted(false);
        for queue in QUEUES {
            self.set_paused(queue, false);
        }
        self.resume_all_schedules()?;
        self.resume_all_runs();
        let paused = self.model.live().values().filter(|job| job.state() == State::Paused);
        let paused: Vec<JobId> = paused.map(|job| job.id).collect();
        for id in paused {
            self.change(id, &Change::Resume);
        }
        Ok(())
    }

    fn submit(&mut self) {
        let mut jobs: Vec<NewJob> = (0..self.rng.random_range(1..4)).map(|_| self.new_job()).collect();
        // An impatient client sends the same again.
        let tries = if self.chance(15) { 2 } else { 1 };
        (1..tries).for_each(|_| self.injected.count(FaultKind::SubmissionDoubled));
        for _ in 0..tries {
            let results = self.model.submit_jobs(jobs.clone()).expect("ids are unique");
            let mut due = Vec::new();
            for (new, result) in jobs.iter().zip(&results) {
                due.extend(self.submitted(&new.job, result));
            }
            if !due.is_empty() {
                self.hint(due);
            }
            for new in &mut jobs {
                new.job.id = self.fresh_id();
            }
        }
    }

    /// A client hears what became of its job; answers what the nodes are told of it.
    fn submitted(&mut self, job: &Job, result: &Creation<Job, UnknownParent>) -> Option<DueJob> {
        match result {
            Creation::Created(stored) => {
                self.checks.acknowledged(stored.id);
                // Now and then somebody takes one for due that still waits.
                (stored.state() == State::Scheduled || self.chance(10)).then(|| DueJob::from(job))
            }
            Creation::Existing(existing) => {
                self.checks.acknowledged(existing.id);
                None
            }
            Creation::Refused(UnknownParent(parent)) => {
                let parent = self.model.job(*parent).expect("parents are chosen among the jobs that exist");
                assert_ne!(parent.tenant, job.tenant, "{}: its own parent is refused", job.id);
                None
            }
            Creation::Conflict(id) => panic!("{id}: the same request is no conflict"),
        }
    }

    fn new_job(&mut self) -> NewJob {
        let number = self.next_number();
        let tenant = TENANTS[self.rng.random_range(0..TENANTS.len())];
        let parents = self.some_parents(tenant);
        let due_in = *[0, 0, 250, 1_000, 5_000].get(self.rng.random_range(0..5usize)).unwrap_or(&0);
        let due_in = due_in + self.rng.random_range(0..200i64);
        let retry = RetryPolicy {
            max_retries: self.rng.random_range(0..4),
            backoff: Backoff::Exponential,
            initial_delay_ms: 100,
            max_delay_ms: 400,
            jitter: 0.2,
            ..RetryPolicy::default()
        };
        let delivery = if self.chance(20) { Delivery::AtMostOnce } else { Delivery::AtLeastOnce };
        let fate = if self.chance(3) { DEADLY } else { "" };
        job_numbered(number)
            .job_type(&format!("{REQUEST}{number}{fate}"))
            .created_at(self.now)
            .due_at(self.now + Duration::from_millis(due_in as u64))
            .queue(QUEUES[self.rng.random_range(0..QUEUES.len())])
            .tenant(tenant)
            .depends_on(parents)
            .priority(Priority::ALL[self.rng.random_range(0..4usize)])
            .retry(retry)
            .delivery(delivery)
            .timeout(TIMEOUT)
            .idempotency(&format!("key-{number}"), 1)
            .build_new()
    }

    fn change_some_job(&mut self) {
        let jobs = self.model.live().keys().chain(self.model.finished().keys());
        let jobs: Vec<JobId> = jobs.copied().collect();
        if jobs.is_empty() {
            return;
        }
        let id = jobs[self.rng.random_range(0..jobs.len())];
        let change = match self.rng.random_range(0..6) {
            0 => Change::Cancel,
            1 => Change::Pause,
            2 => Change::Resume,
            3 => Change::RunNow,
            4 => Change::Retry { payload: None },
            _ => {
                let at = self.now + Duration::from_millis(self.rng.random_range(0..3_000));
                let priority = Some(Priority::ALL[self.rng.random_range(0..4usize)]);
                Change::Edit(Edit { execute_at: Some(at), priority, ..Edit::default() })
            }
        };
        self.change(id, &change);
    }

    fn change(&mut self, id: JobId, change: &Change) {
        let Changed::Done(job) = self.model.change_job(id, change, self.now) else { return };
        self.checks.change_acknowledged(&job);
        if matches!(change, Change::Retry { .. }) {
            self.checks.begins_anew(id);
        }
        self.workflow_checks.disturbed.extend(job.spec.position.as_ref().map(|position| position.run));
        if job.state() == State::Scheduled {
            self.hint(vec![DueJob::from(&*job)]);
        } else {
            let node = self.some_node();
            self.tell(node, ToNode::Machine(Event::Forgotten(id)));
        }
        if job.cancel_requested {
            for node in 0..self.nodes.len() {
                self.tell(node, ToNode::Stop(id));
            }
        }
    }

    /// Hints get lost, doubled and told to the wrong node.
    pub(super) fn hint(&mut self, jobs: Vec<DueJob>) {
        while !self.chance(20) {
            let node = self.some_node();
            self.tell(node, ToNode::Machine(Event::Learned(jobs.clone())));
            if !self.chance(20) {
                return;
            }
            self.injected.count(FaultKind::HintDoubled);
        }
        self.injected.count(FaultKind::HintLost);
    }
}
