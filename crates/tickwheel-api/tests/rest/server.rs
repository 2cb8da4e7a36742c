//! A server to ask, and a scheduler behind it that keeps nothing to itself.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, HOST, HeaderValue};
use axum::http::{HeaderMap, Request, StatusCode};
use axum::{Router, response::Response};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tickwheel_api::{AllowedHosts, ApiState, Memory, Permissions, RefusedProcess, router};
use tickwheel_core::change::Change;
use tickwheel_core::ports::{
    Callback, CallbackStore, Changed, Claim, Clock, ControlStore, Creation, Heartbeat, JobStore, NewJob,
    ReportOutcome, Scheduler, SchedulerError, SchedulerSnapshot, SessionStore, Settled, UnknownParent,
};
use tickwheel_core::retry::Jitter;
use tickwheel_core::settle::{Outcome, PoisonRule, decide};
use tickwheel_core::token::{AttemptRef, TokenKey};
use tickwheel_core::{Job, JobId, State, Timestamp};
use tickwheel_protocol::Limits;
use tickwheel_testkit::fixtures::session;
use tickwheel_testkit::{ManualClock, ModelStore};
use tokio::sync::Notify;
use tower::ServiceExt;

use crate::attempt_notes::StraightNotes;
use crate::redrive_service::RedriveService;
use crate::schedule_service::{Rivals, ScheduleService};
use crate::worker_service::WorkerService;
use crate::workflow_service::{WorkflowService, reconcile};

/// 2027-01-15T08:00:00Z.
pub const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

/// The only address of this machine that jobs may call.
pub const ECHO: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9000);

fn is_loopback(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback()
}

/// Jobs may call no other address of this machine, and may run `echo`.
fn permissions() -> Permissions {
    Permissions {
        address_allowed: Arc::new(|address| address == ECHO || !is_loopback(address.ip())),
        processes_allowed: true,
        process_refused: Arc::new(|process| {
            let (pointer, detail) = ("/command/0".to_owned(), "it is not in the list".to_owned());
            (process.command[0] != "echo").then_some(RefusedProcess { pointer, detail })
        }),
    }
}

/// The API with everything behind it within reach.
pub struct Server {
    pub router: Router,
    pub store: ModelStore,
    pub clock: ManualClock,
    pub tokens: TokenKey,
    pub ready: Arc<AtomicBool>,
    pub waiting: Arc<Notify>,
    pub ended: Arc<Notify>,
    pub rivals: Rivals,
}

/// What came back.
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Value,
}

impl Answer {
    /// The problem's code, having checked that it is a whole problem.
    pub fn problem(&self, status: u16) -> &str {
        assert_eq!(self.status.as_u16(), status, "{}", self.body);
        assert_eq!(self.headers[CONTENT_TYPE], "application/problem+json");
        assert_eq!(self.body["status"], status);
        for field in ["type", "title", "detail"] {
            assert!(self.body[field].is_string(), "{field} of {}", self.body);
        }
        assert_eq!(self.headers.contains_key("retry-after"), status == 503);
        self.body["code"].as_str().expect("a problem has a code")
    }

    /// The pointers to the bad fields.
    pub fn pointers(&self) -> Vec<&str> {
        let errors = self.body["errors"].as_array().map(Vec::as_slice).unwrap_or_default();
        errors.iter().map(|error| error["pointer"].as_str().expect("an error has a pointer")).collect()
    }

    /// The body of a success.
    #[track_caller]
    pub fn ok(self, status: u16) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", self.body);
        self.body
    }
}

impl Server {
    pub fn start() -> Self {
        Self::with_limits(Limits::default())
    }

    pub fn with_limits(limits: Limits) -> Self {
        let store = ModelStore::new();
        let clock = ManualClock::at(NOW);
        let tokens = TokenKey::new([7; 32]);
        let ready = Arc::new(AtomicBool::new(true));
        let (waiting, ended) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let rivals = Rivals::default();
        let scheduler = StraightToStore {
            store: store.clone(),
            clock: clock.clone(),
            ended: ended.clone(),
            waiting: waiting.clone(),
        };
        let is_ready = ready.clone();
        let state = ApiState {
            scheduler: Arc::new(scheduler),
            store: Arc::new(store.clone()),
            schedules: Arc::new(ScheduleService {
                store: store.clone(),
                clock: clock.clone(),
                rivals: rivals.clone(),
            }),
            workflows: Arc::new(WorkflowService { store: store.clone(), clock: clock.clone() }),
            redrives: Arc::new(RedriveService {
                store: store.clone(),
                clock: clock.clone(),
                known: Mutex::default(),
            }),
            workers: Arc::new(WorkerService {
                store: store.clone(),
                clock: clock.clone(),
                tokens: tokens.clone(),
            }),
            notes: Arc::new(StraightNotes(store.clone())),
            worker_lease: Duration::from_secs(15),
            clock: Arc::new(clock.clone()),
            tokens: tokens.clone(),
            hosts: Arc::new(AllowedHosts::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 7180)), [])),
            memory: Memory::new(limits.bodies_bytes_max),
            limits: Arc::new(limits),
            permissions: permissions(),
            metrics: Arc::new(|| "tickwheel_up 1\n".into()),
            ready: Arc::new(move || is_ready.load(Ordering::SeqCst)),
        };
        Self { router: router(state), store, clock, tokens, ready, waiting, ended, rivals }
    }

    pub async fn send(&self, mut request: Request<Body>) -> Answer {
        request.headers_mut().entry(HOST).or_insert(HeaderValue::from_static("localhost"));
        let response: Response =
            self.router.clone().oneshot(request).await.expect("the router always answers");
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.expect("a body in memory").to_bytes();
        let body = match bytes.is_empty() {
            true => Value::Null,
            false => serde_json::from_slice(&bytes)
                .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned())),
        };
        Answer { status: parts.status, headers: parts.headers, body }
    }

    /// Sends text as JSON.
    pub async fn send_text(&self, method: &str, path: &str, body: impl Into<Body>) -> Answer {
        let request = Request::builder().method(method).uri(path).header(CONTENT_TYPE, "application/json");
        self.send(request.body(body.into()).expect("a valid request")).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(Request::get(path).body(Body::empty()).expect("a valid request")).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.send_text("POST", path, body.to_string()).await
    }

    /// Calls something that needs no body.
    pub async fn call(&self, method: &str, path: &str) -> Answer {
        let request = Request::builder().method(method).uri(path).header(CONTENT_TYPE, "application/json");
        let request = request.body(Body::empty());
        self.send(request.expect("a valid request")).await
    }

    /// Submits a job and returns its id.
    pub async fn submit(&self, job: Value) -> String {
        let job = self.post("/api/v1/jobs", job).await.ok(201);
        job["id"].as_str().expect("a job has an id").to_owned()
    }

    /// Starts an attempt of a due job and returns its token.
    pub async fn claim(&self, id: &str) -> String {
        let session = session(1, NOW + Duration::from_secs(3600));
        let session_id = session.id;
        // The second time it is known already, which is as good.
        let _ = self.store.open_session(session).await;
        let job_id: JobId = id.parse().expect("an id");
        let claim =
            Claim { claimed_by: None, session: session_id, jobs: vec![job_id], now: self.clock.now() };
        let claimed = self.store.claim(claim).await.expect("the model does not fail");
        assert_eq!(claimed.len(), 1, "the job was not due");
        self.tokens.sign(AttemptRef { job_id, attempt: claimed[0].attempt })
    }

    /// Lets a job fail for good.
    pub async fn kill(&self, id: &str) {
        let token = self.claim(id).await;
        let report = json!({"error": {"code": "boom", "message": "it blew up"}, "retryable": false});
        self.post(&format!("/api/v1/attempts/{token}/fail"), report).await.ok(204);
    }

    /// How many jobs are stored.
    pub async fn stored(&self) -> usize {
        let list = self.get("/api/v1/jobs?limit=1000").await.ok(200);
        list["items"].as_array().expect("a list has items").len()
    }
}

struct StraightToStore {
    store: ModelStore,
    clock: ManualClock,
    ended: Arc<Notify>,
    waiting: Arc<Notify>,
}

#[async_trait]
impl Scheduler for StraightToStore {
    async fn submit(&self, jobs: Vec<NewJob>) -> Result<Vec<Creation<Job, UnknownParent>>, SchedulerError> {
        // A type by which the tests make a handler panic, to see what the client gets.
        assert!(jobs.iter().all(|new| &*new.job.job_type != "panic"), "the test asked for it");
        Ok(self.store.submit_jobs(jobs).await?)
    }

    async fn change(&self, job_id: JobId, change: Change) -> Result<Changed, SchedulerError> {
        let changed = self.store.change_job(job_id, change, self.clock.now()).await?;
        reconcile(&self.store, self.clock.now()).await?;
        self.ended.notify_waiters();
        Ok(changed)
    }

    async fn report(&self, attempt: AttemptRef, outcome: Outcome) -> Result<ReportOutcome, SchedulerError> {
        let Some(job) = self.store.get_job(attempt.job_id).await? else {
            return Ok(ReportOutcome::NotFound);
        };
        if job.state() != State::Running || job.attempt != attempt.attempt {
            return Ok(ReportOutcome::Stale);
        }
        let settlement = decide(&job, outcome, self.clock.now(), &PoisonRule::default(), Jitter::NONE)
            .expect("every report ends an attempt");
        let settled = self.store.settle(vec![settlement]).await?.settled;
        reconcile(&self.store, self.clock.now()).await?;
        self.ended.notify_waiters();
        Ok(if settled == [Settled::Applied] { ReportOutcome::Recorded } else { ReportOutcome::Stale })
    }

    async fn heartbeat(&self, attempt: AttemptRef) -> Result<Heartbeat, SchedulerError> {
        let Some(job) = self.store.get_job(attempt.job_id).await? else {
            return Ok(Heartbeat::NotFound);
        };
        match job.deadline {
            Some(deadline) if job.state() == State::Running && job.attempt == attempt.attempt => {
                Ok(Heartbeat::Current { cancel_requested: job.cancel_requested, deadline })
            }
            _ => Ok(Heartbeat::Stale),
        }
    }

    async fn send_callback(&self, callback: Callback) -> Result<i64, SchedulerError> {
        Ok(self.store.write_callback(callback).await?)
    }

    async fn discard_dead_letter(&self, job_id: JobId) -> Result<bool, SchedulerError> {
        Ok(self.store.discard_dead_letter(job_id).await?)
    }

    async fn set_queue_paused(&self, queue: &str, paused: bool) -> Result<(), SchedulerError> {
        Ok(self.store.set_queue_paused(queue, paused).await?)
    }

    async fn set_halted(&self, halted: bool) -> Result<(), SchedulerError> {
        Ok(self.store.set_halted(halted).await?)
    }

    fn end_of(&self, _: JobId) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let (ended, waiting) = (self.ended.clone().notified_owned(), self.waiting.clone());
        Box::pin(async move {
            waiting.notify_one();
            ended.await;
        })
    }

    fn wake_waiting(&self) {
        self.ended.notify_waiters();
    }

    async fn snapshot(&self) -> SchedulerSnapshot {
        SchedulerSnapshot { slots: 8, slots_free: 8, ..SchedulerSnapshot::default() }
    }
}
