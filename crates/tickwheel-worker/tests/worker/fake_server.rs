//! A server that speaks the worker protocol as a test wants it: hands out jobs, loses answers, forgets sessions, and
//! remembers everything it was asked.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tickwheel_client::Client;
use tickwheel_client::protocol::{Code, Problem};
use uuid::Uuid;

const PATIENCE: Duration = Duration::from_secs(30);

/// A request.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The last part of the path: `workers`, `poll`, `heartbeat`, `report` …
    pub what: String,
    /// The whole path with its query.
    pub path: String,
    pub body: Value,
    pub at: Instant,
}

#[derive(Default)]
struct State {
    asked: Vec<Asked>,
    /// Jobs that the next polls get.
    jobs: VecDeque<Value>,
    /// The answer to the last poll with jobs, by its number.
    last: Option<(u64, Value)>,
    /// Answers that replace the usual ones, by what is asked. The status 0 does what was asked and hangs up.
    faults: VecDeque<(&'static str, u16, Value)>,
    cancel: Vec<String>,
    drain: bool,
    resync: bool,
    features: Vec<&'static str>,
    seq: u64,
}

/// The server. It stops with the test's process.
pub struct FakeServer {
    url: String,
    state: Arc<(Mutex<State>, Condvar)>,
}

impl FakeServer {
    pub fn start(features: &[&'static str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state =
            Arc::new((Mutex::new(State { features: features.to_vec(), ..State::default() }), Condvar::new()));
        let shared = state.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let state = shared.clone();
                std::thread::spawn(move || serve(stream.unwrap(), &state));
            }
        });
        Self { url, state }
    }

    pub fn client(&self) -> Client {
        Client::new(&self.url).unwrap()
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = change(&mut self.state.0.lock().unwrap());
        self.state.1.notify_all();
        changed
    }

    /// Hands out a job. Returns its token.
    pub fn give(&self, job_type: &str, payload: Value) -> String {
        let token = Uuid::now_v7().to_string();
        let job = assignment(job_type, payload, &token);
        self.change(|state| state.jobs.push_back(job));
        token
    }

    /// Answers the next such request in another way.
    pub fn answer(&self, what: &'static str, status: u16, body: Value) {
        self.change(|state| state.faults.push_back((what, status, body)));
    }

    /// Does what the next such request asks, and loses the answer.
    pub fn lose_answer(&self, what: &'static str) {
        self.answer(what, 0, Value::Null);
    }

    pub fn cancel(&self, token: &str) {
        self.change(|state| state.cancel.push(token.to_owned()));
    }

    pub fn drain(&self, drain: bool) {
        self.change(|state| state.drain = drain);
    }

    pub fn resync(&self) {
        self.change(|state| state.resync = true);
    }

    /// What was asked of this kind, once there are so many.
    pub async fn asked(&self, what: &str, count: usize) -> Vec<Asked> {
        self.until(what, |asked| asked.len() >= count).await
    }

    /// What was asked of this kind, once it is as wanted.
    pub async fn until(&self, what: &str, is_enough: impl Fn(&[Asked]) -> bool) -> Vec<Asked> {
        let began = Instant::now();
        loop {
            let asked: Vec<_> =
                self.change(|state| state.asked.iter().filter(|asked| asked.what == what).cloned().collect());
            if is_enough(&asked) {
                return asked;
            }
            assert!(began.elapsed() < PATIENCE, "waited in vain for {what}: {asked:#?}");
            // sleep: the pause between two looks
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Every report so far.
    pub async fn reports(&self, count: usize) -> Vec<Value> {
        let all = |asked: &[Asked]| -> Vec<Value> {
            asked.iter().flat_map(|asked| asked.body["reports"].as_array().unwrap().clone()).collect()
        };
        all(&self.until("report", |asked| all(asked).len() >= count).await)
    }
}

fn serve(mut stream: TcpStream, state: &(Mutex<State>, Condvar)) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while let Some((line, body)) = read_request(&mut reader) {
        let (status, answer) = answer(&line, body, state);
        if status == 0 {
            return;
        }
        let text = if status == 204 { String::new() } else { answer.to_string() };
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            text.len()
        );
        if stream.write_all((head + &text).as_bytes()).is_err() {
            return;
        }
    }
}

fn answer(line: &str, body: Value, state: &(Mutex<State>, Condvar)) -> (u16, Value) {
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let is_leaving = line.starts_with("DELETE");
    let last = path.split('?').next().unwrap_or_default().rsplit('/').next().unwrap_or_default().to_owned();
    let what = if is_leaving { "leave".to_owned() } else { last };
    let (mutex, changed) = state;
    let mut state = mutex.lock().unwrap();
    state.asked.push(Asked { what: what.clone(), path, body: body.clone(), at: Instant::now() });
    let fault = state.faults.iter().position(|(known, ..)| *known == what);
    let fault = fault.and_then(|place| state.faults.remove(place));
    if let Some((_, status, body)) = fault.clone().filter(|(_, status, _)| *status != 0) {
        return (status, body);
    }
    let answer = match what.as_str() {
        "server" => {
            let features = state.features.clone();
            (200, json!({"version": "0", "worker_protocol": {"min": 1, "max": 1}, "features": features}))
        }
        "workers" => {
            (state.seq, state.last) = (0, None);
            (201, registered())
        }
        "heartbeat" => {
            let resync = std::mem::take(&mut state.resync);
            let cancel = std::mem::take(&mut state.cancel);
            (
                200,
                json!({"cancel": cancel, "lost": [], "lease": "5s", "drain": state.drain, "resync": resync}),
            )
        }
        "report" => {
            let accepted: Vec<_> =
                body["reports"].as_array().unwrap().iter().map(|_| json!({"status": "accepted"})).collect();
            (200, json!({"results": accepted}))
        }
        "logs" => {
            let accepted: Vec<_> =
                body["logs"].as_array().unwrap().iter().map(|_| json!({"status": "accepted"})).collect();
            (200, json!({"results": accepted}))
        }
        "leave" => (204, Value::Null),
        "poll" => {
            let seq = body["seq"].as_u64().unwrap();
            if let Some((known, answer)) = &state.last
                && *known == seq
            {
                return (200, answer.clone());
            }
            state.seq = state.seq.max(seq);
            changed.notify_all();
            let max = body["max"].as_u64().unwrap() as usize;
            let give_up_at = Instant::now() + Duration::from_millis(500);
            let drain = state.drain;
            while (state.jobs.is_empty() || max == 0)
                && state.seq == seq
                && state.cancel.is_empty()
                && state.drain == drain
                && Instant::now() < give_up_at
            {
                state = changed.wait_timeout(state, Duration::from_millis(20)).unwrap().0;
            }
            let count = if state.seq == seq { max.min(state.jobs.len()) } else { 0 };
            let jobs: Vec<_> = state.jobs.drain(..count).collect();
            let cancel = std::mem::take(&mut state.cancel);
            let answer =
                json!({"jobs": jobs, "seq": seq, "cancel": cancel, "lost": [], "drain": state.drain});
            if !jobs.is_empty() {
                state.last = Some((seq, answer.clone()));
            }
            (200, answer)
        }
        _ => (404, problem(Code::NotFound)),
    };
    if fault.is_some() { (0, Value::Null) } else { answer }
}

fn registered() -> Value {
    json!({
        "worker_id": Uuid::now_v7(), "lease": "5s", "heartbeat_interval": "1s", "poll_wait": "500ms",
        "limits": {"poll_jobs": 1000, "reports": 1000, "report_bytes": 16777216, "result_bytes": 262144,
                   "log_line_bytes": 16384, "log_bytes": 1048576},
    })
}

/// A rejection.
pub fn problem(code: Code) -> Value {
    serde_json::to_value(Problem::new(code, "no")).unwrap()
}

fn assignment(job_type: &str, payload: Value, token: &str) -> Value {
    let time = "2026-01-01T00:00:00Z";
    let job = json!({
        "id": Uuid::now_v7(), "type": job_type, "status": "running", "queue": "default", "priority": "normal",
        "tenant": "default", "execute_at": time, "next_run_at": null, "created_at": time, "started_at": time,
        "completed_at": null, "deadline": null, "attempt": 1, "retries": 0, "max_retries": 3, "cancel_requested": false,
        "error": null, "tags": [], "metadata": {}, "payload": payload, "target": {"worker": {}}, "retry": {},
        "timeout": "300s", "delivery": "at_least_once", "depends_on": [], "concurrency_key": null, "callback_url": null,
        "created_by": null, "schedule_id": null, "workflow_run_id": null, "task": null,
    });
    json!({"job": job, "attempt": 1, "token": token, "fencing_token": 1, "deadline": time, "deadline_in": "300s",
           "traceparent": null})
}

fn read_request(reader: &mut BufReader<TcpStream>) -> Option<(String, Value)> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let Some((name, value)) = header.trim_end().split_once(": ") else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((line.trim_end().to_owned(), serde_json::from_slice(&body).unwrap_or_default()))
}
