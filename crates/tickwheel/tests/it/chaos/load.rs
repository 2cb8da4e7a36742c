//! Clients that submit without pause, on whatever servers there are at the moment, and remember what was acknowledged.
//!
//! A submission with an idempotency key is repeated until it is answered, as a careful client would; one without is tried once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Method;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::api::{Answer, Api, http_job, id_of};
use crate::eventually::{PATIENCE, eventually};
use crate::target::{Reply, Target};

const CLIENTS: u64 = 4;
const PAUSE_MS_MAX: u64 = 20;
const DELAY_MS_MAX: u64 = 1_000;
const BATCH_LEN_MAX: usize = 6;
/// Long enough that some are under way whenever something happens, and shorter than a server's life between two kills may be.
const SLOW: Duration = Duration::from_millis(150);

/// What was acknowledged.
#[derive(Debug, Default)]
pub struct Ledger {
    /// The jobs, as they were answered, by id.
    pub jobs: HashMap<String, Value>,
    /// Submissions whose answer was lost or that were put off, and that were sent again under the same key.
    pub repeated: usize,
}

/// The clients at work.
pub struct Load {
    servers: watch::Sender<Vec<Api>>,
    stop: watch::Sender<bool>,
    ledger: Arc<Mutex<Ledger>>,
    clients: JoinSet<()>,
}

impl Load {
    /// Starts the clients. They wait until they are pointed at a server.
    pub fn start(target: &Target, seed: u64) -> Self {
        prepare(target);
        let (servers, stop) = (watch::Sender::new(Vec::new()), watch::Sender::new(false));
        let ledger = Arc::<Mutex<Ledger>>::default();
        let mut clients = JoinSet::new();
        for number in 0..CLIENTS {
            let client = Client {
                rng: StdRng::seed_from_u64(seed.wrapping_mul(CLIENTS).wrapping_add(number)),
                target: target.url(""),
                servers: servers.subscribe(),
                stop: stop.subscribe(),
                ledger: ledger.clone(),
                name: format!("client-{number}"),
                submissions: 0,
            };
            clients.spawn(client.run());
        }
        Self { servers, stop, ledger, clients }
    }

    /// From now on submissions go to these servers, to any of them.
    pub fn point_at(&self, servers: impl IntoIterator<Item = Api>) {
        self.servers.send_replace(servers.into_iter().collect());
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
    target.reply("/slow", Reply::ok().after(SLOW));
    // A job's own attempts come one after the other, so that its number says whether it has been here.
    target.on("/fails-once", |call| if call.fencing_token() == 1 { Reply::status(503) } else { Reply::ok() });
}

struct Client {
    rng: StdRng,
    target: String,
    servers: watch::Receiver<Vec<Api>>,
    stop: watch::Receiver<bool>,
    ledger: Arc<Mutex<Ledger>>,
    name: String,
    submissions: u64,
}

impl Client {
    async fn run(mut self) {
        while !*self.stop.borrow() {
            match self.rng.random_range(0..10) {
                0 => self.submit_batch_once().await,
                1 => self.submit_batch().await,
                _ => self.submit_one().await,
            }
            self.pause().await;
        }
    }

    async fn submit_one(&mut self) {
        let job = self.job_with_key();
        let answer = self.until_answered("/api/v1/jobs", &job).await;
        self.acknowledge(&answer.json());
    }

    async fn submit_batch(&mut self) {
        let jobs: Vec<Value> = (0..self.batch_len()).map(|_| self.job_with_key()).collect();
        let answer = self.until_answered("/api/v1/jobs/batch", &json!({"jobs": jobs})).await;
        self.acknowledge_batch(&answer);
    }

    async fn submit_batch_once(&mut self) {
        let jobs: Vec<Value> = (0..self.batch_len()).map(|_| self.job()).collect();
        let server = self.server().await;
        let sent = server.send(Method::POST, "/api/v1/jobs/batch", Some(&json!({"jobs": jobs}))).await;
        if let Some(answer) = sent.ok().filter(|answer| answer.status != 503) {
            self.acknowledge_batch(&answer.success());
        }
    }

    /// Repeats the request until a server has taken it.
    async fn until_answered(&mut self, path: &str, body: &Value) -> Answer {
        loop {
            match self.server().await.send(Method::POST, path, Some(body)).await {
                Ok(answer) if answer.status != 503 => return answer.success(),
                _ => self.ledger.lock().unwrap().repeated += 1,
            }
            self.pause().await;
        }
    }

    fn acknowledge_batch(&self, answer: &Answer) {
        let answer = answer.json();
        for result in answer["results"].as_array().expect("a list of results") {
            self.acknowledge(
                result.get("job").unwrap_or_else(|| panic!("a sound job was refused: {result}")),
            );
        }
    }

    fn acknowledge(&self, job: &Value) {
        self.ledger.lock().unwrap().jobs.insert(id_of(job), job.clone());
    }

    fn job(&mut self) -> Value {
        let path = match self.rng.random_range(0..10) {
            0 | 1 => "/slow",
            2 | 3 => "/fails-once",
            _ => "/fast",
        };
        let mut job = http_job(&format!("{}{path}", self.target));
        job["retry"] = json!({"max_retries": 1, "backoff": "fixed", "initial_delay": "50ms"});
        if self.rng.random_bool(0.6) {
            job["delay"] = json!(format!("{}ms", self.rng.random_range(1..DELAY_MS_MAX)));
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
        self.rng.random_range(2..=BATCH_LEN_MAX)
    }

    async fn server(&mut self) -> Api {
        let servers = self.servers.wait_for(|servers| !servers.is_empty()).await.expect("the load is held");
        servers[self.rng.random_range(0..servers.len())].clone()
    }

    async fn pause(&mut self) {
        let pause = Duration::from_millis(self.rng.random_range(0..PAUSE_MS_MAX));
        // sleep: the pace of the load
        tokio::time::sleep(pause).await;
    }
}
