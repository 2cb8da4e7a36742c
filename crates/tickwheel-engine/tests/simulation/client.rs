//! What clients do: submit (twice, if they are impatient), change their minds, stop the world and let it go on.

use std::sync::Arc;
use std::time::Duration;

use rand::RngExt;
use tickwheel_core::change::{Change, Edit};
use tickwheel_core::ports::{Changed, Creation, NewJob, Scheduler, UnknownParent};
use tickwheel_core::retry::{Backoff, RetryPolicy};
use tickwheel_core::{Delivery, Job, JobId, Priority, State, Target, Timestamp};
use tickwheel_testkit::fixtures::{job, job_id, job_numbered};

use crate::TIMEOUT;
use crate::checks::Forbidden;
use crate::cluster::{Cluster, SharedCluster};
use crate::injected::FaultKind;
use crate::node::Process;
use crate::world::World;

pub const QUEUES: [&str; 2] = ["default", "reports"];
const TENANTS: [&str; 3] = ["a", "b", "c"];
/// How the type of a job begins that a client has asked for; what follows is the number of the request, however often
/// it is sent.
pub const REQUEST: &str = "request-";
/// How the type of a job for workers begins.
pub const WORK: &str = "work";
/// How the type of a job ends that takes the process with it that runs it.
pub const DEADLY: &str = "-deadly";

/// A client that talks to one node about jobs.
struct Client {
    node: usize,
    cluster: SharedCluster,
    scheduler: Arc<dyn Scheduler>,
}

impl World {
    /// One client does one thing.
    pub fn client_acts(&mut self) {
        let Some(process) = self.some_process() else { return };
        let which = self.cluster.lock().rng.random_range(0..100);
        match which {
            0..25 => self.client_uses_schedules(&process),
            25..34 => self.client_uses_workflows(&process),
            34..67 => self.submit(&process),
            67..90 => self.change_some_job(&process),
            90..95 => self.turn_stop_switch(&process),
            _ => self.pause_some_queue(&process),
        }
    }

    /// At the end everything that was held is released.
    pub async fn let_everything_go(&mut self) {
        let process = self.some_process().expect("all of them run");
        let Some(client) = self.client(&process) else { return };
        client.set_halted(false).await;
        for queue in QUEUES {
            client.set_paused(queue, false).await;
        }
        self.resume_all_schedules(&process).await;
        self.resume_all_runs(&process).await;
        let paused: Vec<JobId> = self.cluster.lock().model.with_model(|model| {
            model.live().values().filter(|job| job.state() == State::Paused).map(|job| job.id).collect()
        });
        for id in paused {
            client.change(id, Change::Resume).await;
        }
    }

    fn client(&self, process: &Process) -> Option<Client> {
        let scheduler = process.with_engine(|engine| engine.scheduler())?;
        Some(Client { node: process.node(), cluster: self.cluster.clone(), scheduler })
    }

    fn submit(&mut self, process: &Process) {
        let mut jobs = self.cluster.lock().new_jobs(process.node());
        if let Some(client) = self.client(process) {
            let jobs = jobs.clone();
            process.serve(async move { client.submit(jobs).await });
        }
        // An impatient client sends the same again, to anybody.
        let is_impatient = self.cluster.lock().chance(15);
        if is_impatient
            && let Some(other) = self.some_process()
            && let Some(client) = self.client(&other)
        {
            let mut cluster = self.cluster.lock();
            cluster.injected.count(FaultKind::SubmissionDoubled);
            for new in &mut jobs {
                let (now, number) = (cluster.now_of(other.node()), cluster.next_number());
                new.job.id = job_id(now, number);
            }
            drop(cluster);
            other.serve(async move { client.submit(jobs).await });
        }
    }

    fn change_some_job(&mut self, process: &Process) {
        let (jobs, change) = {
            let mut cluster = self.cluster.lock();
            let jobs: Vec<JobId> = cluster
                .model
                .with_model(|model| model.live().keys().chain(model.finished().keys()).copied().collect());
            let now = cluster.now_of(process.node());
            (jobs, cluster.some_change(now))
        };
        let Some(id) = self.cluster.lock().some_of(&jobs) else { return };
        if let Some(client) = self.client(process) {
            process.serve(async move { client.change(id, change).await });
        }
    }

    fn turn_stop_switch(&mut self, process: &Process) {
        let halted = self.cluster.lock().chance(40);
        if let Some(client) = self.client(process) {
            process.serve(async move { client.set_halted(halted).await });
        }
    }

    fn pause_some_queue(&mut self, process: &Process) {
        let (queue, paused) = {
            let mut cluster = self.cluster.lock();
            (cluster.some_of(&QUEUES).expect("there are some"), cluster.chance(40))
        };
        if let Some(client) = self.client(process) {
            process.serve(async move { client.set_paused(queue, paused).await });
        }
    }
}

impl Client {
    async fn submit(&self, jobs: Vec<NewJob>) {
        let submitted: Vec<Job> = jobs.iter().map(|new| new.job.clone()).collect();
        // Whoever hears of an error does not know what became of it.
        let Ok(results) = self.scheduler.submit(jobs).await else { return };
        let mut cluster = self.cluster.lock();
        for (job, result) in submitted.iter().zip(&results) {
            cluster.submitted(job, result);
        }
    }

    async fn change(&self, id: JobId, change: Change) {
        if let Ok(Changed::Done(job)) = self.scheduler.change(id, change).await
            && job.cancel_requested
        {
            self.cluster.lock().checks.acknowledged(self.node, Forbidden::Attempt(id, job.attempt));
        }
    }

    async fn set_halted(&self, halted: bool) {
        if self.scheduler.set_halted(halted).await.is_ok() && halted {
            let mut cluster = self.cluster.lock();
            if cluster.model.with_model(|model| model.halted()) {
                cluster.checks.acknowledged(self.node, Forbidden::All);
            }
        }
    }

    async fn set_paused(&self, queue: &str, paused: bool) {
        if self.scheduler.set_queue_paused(queue, paused).await.is_ok() && paused {
            let mut cluster = self.cluster.lock();
            if cluster.model.with_model(|model| model.controls().paused_queues.iter().any(|q| **q == *queue))
            {
                cluster.checks.acknowledged(self.node, Forbidden::Queue(queue.into()));
            }
        }
    }
}

impl Cluster {
    /// A client hears what became of its job.
    fn submitted(&mut self, job: &Job, result: &Creation<Job, UnknownParent>) {
        match result {
            Creation::Created(stored) | Creation::Existing(stored) => self.checks.stored(stored.id),
            Creation::Refused(UnknownParent(parent)) => {
                let parent = self.model.with_model(|model| model.job(*parent).cloned());
                if parent.is_some_and(|parent| parent.tenant == job.tenant) {
                    self.violated("I9", format!("{}: its own parent is refused", job.id));
                }
            }
            Creation::Conflict(id) => self.violated("I6", format!("{id}: the same request is no conflict")),
        }
    }

    fn new_jobs(&mut self, node: usize) -> Vec<NewJob> {
        let now = self.now_of(node);
        (0..self.rng.random_range(1..4)).map(|_| self.new_job(now)).collect()
    }

    fn new_job(&mut self, now: Timestamp) -> NewJob {
        let number = self.next_number();
        let tenant = self.some_of(&TENANTS).expect("there are some");
        let parents = self.some_parents(tenant);
        let due_in = self.some_of(&[0, 0, 250, 1_000, 5_000]).unwrap_or(0) + self.rng.random_range(0..200);
        let retry = RetryPolicy {
            max_retries: self.rng.random_range(0..6),
            backoff: Backoff::Exponential,
            initial_delay_ms: 100,
            max_delay_ms: 400,
            jitter: 0.2,
            ..RetryPolicy::default()
        };
        let delivery = if self.chance(20) { Delivery::AtMostOnce } else { Delivery::AtLeastOnce };
        let fate = if self.chance(3) { DEADLY } else { "" };
        let (job_type, target) = if self.chance(30) {
            (format!("{WORK}{fate}"), Target::Worker)
        } else {
            (format!("{REQUEST}{number}{fate}"), job().build().spec.target.clone())
        };
        job_numbered(number)
            .job_type(&job_type)
            .target(target)
            .created_at(now)
            .due_at(now + Duration::from_millis(due_in))
            .queue(self.some_of(&QUEUES).expect("there are some"))
            .tenant(tenant)
            .depends_on(parents)
            .priority(self.some_of(&Priority::ALL).expect("there are some"))
            .retry(retry)
            .delivery(delivery)
            .timeout(TIMEOUT)
            .idempotency(&format!("key-{number}"), 1)
            .build_new()
    }

    fn some_change(&mut self, now: Timestamp) -> Change {
        match self.rng.random_range(0..6) {
            0 => Change::Cancel,
            1 => Change::Pause,
            2 => Change::Resume,
            3 => Change::RunNow,
            4 => Change::Retry { payload: None },
            _ => {
                let at = now + Duration::from_millis(self.rng.random_range(0..3_000));
                let priority = self.some_of(&Priority::ALL);
                Change::Edit(Edit { execute_at: Some(at), priority, ..Edit::default() })
            }
        }
    }
}
