//! Clients that submit without pause, on whatever servers there are at the moment, and remember what was acknowledged;
//! and an operator (`operator.rs`) who stops and starts things meanwhile.
//!
//! A submission with an idempotency key is repeated until it is answered, as a careful client would; one without is
//! tried once.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Method;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::operator::Operator;
use crate::api::{Answer, Api, http_job, id_of};
use crate::checker::Ledger;
use crate::eventually::{PATIENCE, eventually};
use crate::target::{Call, Reply, Target};

const CLIENTS: u64 = 4;
const PAUSE_MS_MAX: u64 = 20;
const CALM_PAUSE_MS_MAX: u64 = 300;
const DELAY_MS_MAX: u64 = 1_000;
const BATCH_LEN_MAX: usize = 6;
/// Long enough that some are under way whenever something happens, and shorter than a server's life between two kills
/// may be.
const SLOW: Duration = Duration::from_millis(150);
/// The queue that the operator pauses now and then.
pub const LANE: &str = "lane";

/// The clients at work.
pub struct Load {
    servers: watch::Sender<Vec<Api>>,
    stop: watch::Sender<bool>,
    pause_ms_max: watch::Sender<u64>,
    ledger: Arc<Mutex<Ledger>>,
    clients: JoinSet<()>,
}

impl Load {
    /// Starts the clients. They wait until they are pointed at a server.
    pub fn start(target: &Target, seed: u64) -> Self {
        prepare(target);
        let (servers, stop) = (watch::Sender::new(Vec::new()), watch::Sender::new(false));
        let (ledger, pause_ms_max) = (Arc::<Mutex<Ledger>>::default(), watch::Sender::new(PAUSE_MS_MAX));
        let mut clients = JoinSet::new();
        let desk = |number: u64| Desk {
            rng: StdRng::seed_from_u64(seed.wrapping_mul(CLIENTS + 1).wrapping_add(number)),
            target: target.url(""),
            servers: servers.subscribe(),
            stop: stop.subscribe(),
            ledger: ledger.clone(),
        };
        for number in 0..CLIENTS {
            let pause_ms_max = pause_ms_max.subscribe();
            let name = format!("client-{number}");
            let client = Client { desk: desk(number), pause_ms_max, name, submissions: 0 };
            clients.spawn(client.run());
        }
        clients.spawn(Operator::new(desk(CLIENTS)).run());
        Self { servers, stop, pause_ms_max, ledger, clients }
    }

    /// From now on submissions go to these servers, to any of them.
    pub fn point_at(&self, servers: impl IntoIterator<Item = Api>) {
        self.servers.send_replace(servers.into_iter().collect());
    }

    /// From now on there is just enough of it to see what happens: for a fault that lasts.
    pub fn calm_down(&self) {
        self.pause_ms_max.send_replace(CALM_PAUSE_MS_MAX);
    }

    /// As much as at first.
    pub fn pick_up(&self) {
        self.pause_ms_max.send_replace(PAUSE_MS_MAX);
    }

    /// Waits until `count` more jobs are acknowledged than are now.
    pub async fn acknowledges(&self, count: usize) {
        let acknowledged = || self.ledger.lock().unwrap().jobs.len();
        let enough = acknowledged() + count;
        let what = format!("{count} jobs to be acknowledged");
        eventually(&what, PATIENCE, async || (acknowledged() >= enough).then_some(())).await;
    }

    /// Lets every client finish what it is at, and says what was acknowledged. There has to be a server.
    pub async fn stop(mut self) -> Ledger {
        self.stop.send_replace(true);
        while let Some(ended) = self.clients.join_next().await {
            ended.expect("a client found something wrong");
        }
        std::mem::take(&mut self.ledger.lock().unwrap())
    }
}

fn prepare(target: &Target) {
    target.on("/fast", signed);
    target.on("/slow", |call| signed(call).after(SLOW));
    // A job's own attempts come one after the other, so that its number says whether it has been here.
    target
        .on("/fails-once", |call| if call.fencing_token() == 1 { Reply::status(503) } else { signed(call) });
}

/// An answer that says which attempt it was given to.
pub fn signed(call: &Call) -> Reply {
    Reply::json(json!({"attempt": call.fencing_token()}))
}

/// What everybody who talks to the servers has.
pub struct Desk {
    pub rng: StdRng,
    /// The target's address.
    pub target: String,
    servers: watch::Receiver<Vec<Api>>,
    stop: watch::Receiver<bool>,
    pub ledger: Arc<Mutex<Ledger>>,
}

impl Desk {
    /// Whether it is time to go home.
    pub fn is_closing(&self) -> bool {
        *self.stop.borrow()
    }

    /// Any of the servers there are, as soon as there is one.
    pub async fn server(&mut self) -> Api {
        let servers = self.servers.wait_for(|servers| !servers.is_empty()).await.expect("the load is held");
        servers[self.rng.random_range(0..servers.len())].clone()
    }

    /// Repeats a request until a server has taken it.
    pub async fn until_answered(&mut self, method: Method, path: &str, body: Option<&Value>) -> Answer {
        loop {
            match self.server().await.send(method.clone(), path, body).await {
                Ok(answer) if answer.status != 503 => return answer,
                _ => self.ledger.lock().unwrap().repeated += 1,
            }
            self.pause(PAUSE_MS_MAX).await;
        }
    }

    /// Writes down that a job was acknowledged.
    pub fn acknowledge(&self, job: &Value) {
        self.ledger.lock().unwrap().acknowledge(job);
    }

    /// Does nothing for up to so many milliseconds.
    pub async fn pause(&mut self, millis_max: u64) {
        let pause = Duration::from_millis(self.rng.random_range(0..millis_max));
        // sleep: the pace of the load
        tokio::time::sleep(pause).await;
    }
}

struct Client {
    desk: Desk,
    pause_ms_max: watch::Receiver<u64>,
    name: String,
    submissions: u64,
}

impl Client {
    async fn run(mut self) {
        while !self.desk.is_closing() {
            match self.desk.rng.random_range(0..10) {
                0 => self.submit_batch_once().await,
                1 => self.submit_batch().await,
                2 => self.submit_family().await,
                _ => drop(self.submit_one(json!([])).await),
            }
            let pause_ms_max = *self.pause_ms_max.borrow();
            self.desk.pause(pause_ms_max).await;
        }
    }

    async fn submit_one(&mut self, parents: Value) -> String {
        let mut job = self.job_with_key();
        job["depends_on"] = parents;
        let job = self.until_taken("/api/v1/jobs", &job).await.json();
        self.desk.acknowledge(&job);
        id_of(&job)
    }

    /// Two jobs and one that waits for both.
    async fn submit_family(&mut self) {
        let parents = [self.submit_one(json!([])).await, self.submit_one(json!([])).await];
        self.submit_one(json!(parents)).await;
    }

    async fn submit_batch(&mut self) {
        let jobs: Vec<Value> = (0..self.batch_len()).map(|_| self.job_with_key()).collect();
        let answer = self.until_taken("/api/v1/jobs/batch", &json!({"jobs": jobs})).await;
        self.acknowledge_batch(&answer);
    }

    async fn submit_batch_once(&mut self) {
        let jobs: Vec<Value> = (0..self.batch_len()).map(|_| self.job()).collect();
        let server = self.desk.server().await;
        let sent = server.send(Method::POST, "/api/v1/jobs/batch", Some(&json!({"jobs": jobs}))).await;
        if let Some(answer) = sent.ok().filter(|answer| answer.status != 503) {
            self.acknowledge_batch(&answer.success());
        }
    }

    async fn until_taken(&mut self, path: &str, body: &Value) -> Answer {
        self.desk.until_answered(Method::POST, path, Some(body)).await.success()
    }

    fn acknowledge_batch(&self, answer: &Answer) {
        let answer = answer.json();
        for result in answer["results"].as_array().expect("a list of results") {
            let job = result.get("job").unwrap_or_else(|| panic!("a sound job was refused: {result}"));
            self.desk.acknowledge(job);
        }
    }

    fn job(&mut self) -> Value {
        let path = match self.desk.rng.random_range(0..10) {
            0 | 1 => "/slow",
            2 | 3 => "/fails-once",
            _ => "/fast",
        };
        let mut job = http_job(&format!("{}{path}", self.desk.target));
        job["retry"] = json!({"max_retries": 1, "backoff": "fixed", "initial_delay": "50ms"});
        if self.desk.rng.random_bool(0.6) {
            job["delay"] = json!(format!("{}ms", self.desk.rng.random_range(1..DELAY_MS_MAX)));
        }
        if self.desk.rng.random_bool(0.2) {
            job["queue"] = json!(LANE);
        }
        job
    }

    fn job_with_key(&mut self) -> Value {
        self.submissions += 1;
        let key = format!("{}-{}", self.name, self.submissions);
        let mut job = self.job();
        job["idempotency_key"] = json!(key);
        // The key is not part of the answer; here it can be found.
        job["metadata"] = json!({"key": key});
        job
    }

    fn batch_len(&mut self) -> usize {
        self.desk.rng.random_range(2..=BATCH_LEN_MAX)
    }
}
