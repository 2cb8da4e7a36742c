//! A server that answers what it was told to and remembers what it was asked.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tickwheel_client::Client;
use tickwheel_client::protocol::{Code, Problem};

/// A request as it arrived.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Method and path with query.
    pub line: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Asked {
    /// Its body.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// A header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<String> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    }
}

type Answers = Arc<dyn Fn(&Asked) -> (u16, Value) + Send + Sync>;

/// The server. It stops with the test's process.
pub struct FakeServer {
    /// Its address.
    pub url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl FakeServer {
    /// Gives these answers (status and body) in turn, then 500. The status 0 hangs up.
    pub fn answering(answers: Vec<(u16, Value)>) -> Self {
        let answers = Mutex::new(VecDeque::from(answers));
        Self::computing(move |_| {
            answers.lock().unwrap().pop_front().unwrap_or((500, json!("no answer left")))
        })
    }

    /// Answers what `answer` says.
    pub fn computing(answer: impl Fn(&Asked) -> (u16, Value) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (answer, seen): (Answers, _) = (Arc::new(answer), asked.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (answer, seen) = (answer.clone(), seen.clone());
                std::thread::spawn(move || serve(stream.unwrap(), &answer, &seen));
            }
        });
        Self { url, asked }
    }

    /// A client of it.
    pub fn client(&self) -> Client {
        Client::new(&self.url).unwrap()
    }

    /// What it was asked so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

fn serve(mut stream: TcpStream, answer: &Answers, seen: &Mutex<Vec<Asked>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while let Some(asked) = read_request(&mut reader) {
        seen.lock().unwrap().push(asked.clone());
        let (status, body) = answer(&asked);
        if status == 0 {
            return;
        }
        let body = body.to_string();
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        if stream.write_all((head + &body).as_bytes()).is_err() {
            return;
        }
    }
}

fn read_request(reader: &mut BufReader<TcpStream>) -> Option<Asked> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let line = line.trim_end().trim_end_matches(" HTTP/1.1").to_owned();
    let mut headers = Vec::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let Some((name, value)) = header.trim_end().split_once(": ") else { break };
        headers.push((name.to_lowercase(), value.to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let mut body = vec![0; length.map_or(0, |(_, length)| length.parse().unwrap())];
    reader.read_exact(&mut body).ok()?;
    Some(Asked { line, headers, body })
}

/// A job as a server describes it.
pub fn job(status: &str, changes: Value) -> Value {
    let mut job = json!({
        "id": "01890000-0000-7000-8000-000000000001", "type": "send_email", "status": status, "queue": "mail",
        "priority": "normal", "tenant": "default", "execute_at": "2026-01-01T00:00:00Z", "next_run_at": null,
        "created_at": "2026-01-01T00:00:00Z", "started_at": null, "completed_at": null, "deadline": null, "attempt": 0,
        "retries": 0, "max_retries": 3, "cancel_requested": false, "error": null, "tags": [], "metadata": {},
        "payload": null, "target": {"worker": {}}, "retry": {}, "timeout": "300s", "delivery": "at_least_once",
        "depends_on": [], "concurrency_key": null, "callback_url": null, "created_by": null, "schedule_id": null,
        "workflow_run_id": null, "task": null,
    });
    for (field, value) in changes.as_object().unwrap() {
        job[field] = value.clone();
    }
    job
}

/// A rejection.
pub fn problem(code: Code) -> Value {
    serde_json::to_value(Problem::new(code, "no")).unwrap()
}
