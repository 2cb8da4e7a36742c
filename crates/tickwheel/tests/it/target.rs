//! A real HTTP server for jobs to call: it remembers every request and answers each path as told.
//!
//! A path nobody said anything about is answered `200 {}` at once.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::eventually::{PATIENCE, eventually};

/// A request as it arrived.
#[derive(Clone, Debug)]
pub struct Call {
    /// When its head had arrived, by the clock the server under test has too.
    pub arrived_at: Timestamp,
    /// Its method.
    pub method: Method,
    /// Its path, without the query.
    pub path: String,
    /// What follows the `?`, if anything does.
    pub query: Option<String>,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
}

/// How a request is answered: `200 {}` at once, unless told otherwise.
#[derive(Clone, Debug)]
pub struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: Bytes,
    delay: Duration,
    gate: Option<Gate>,
}

/// Holds answers back until it is opened. Clones are the same gate.
#[derive(Clone, Debug)]
pub struct Gate(watch::Sender<bool>);

type Behaviour = Arc<dyn Fn(&Call) -> Reply + Send + Sync>;

/// The server. It stops when dropped.
pub struct Target {
    address: SocketAddr,
    state: Arc<State>,
    accepting: AbortHandle,
}

#[derive(Default)]
struct State {
    calls: Mutex<Vec<Call>>,
    behaviours: Mutex<HashMap<String, Behaviour>>,
    crowds: Mutex<HashMap<String, Crowd>>,
}

/// The calls of a path that are being answered.
#[derive(Clone, Copy, Default)]
struct Crowd {
    now: usize,
    most: usize,
}

/// One of them, until it is answered or its caller has gone away.
struct InCrowd<'s> {
    state: &'s State,
    path: String,
}

impl Call {
    /// A header's text, empty if there is none.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("headers of ours are text"))
    }

    /// The job it is for.
    pub fn job_id(&self) -> &str {
        self.header("tickwheel-job-id")
    }

    /// The fencing token that came with it.
    pub fn fencing_token(&self) -> u64 {
        self.header("tickwheel-fencing-token").parse().expect("a fencing token is a number")
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a JSON body")
    }
}

impl Reply {
    /// `200` with an empty JSON object.
    pub fn ok() -> Self {
        Self::status(200)
    }

    /// `200` with this.
    pub fn json(result: Value) -> Self {
        Self::ok().body(result.to_string())
    }

    /// This status with an empty JSON object.
    pub fn status(status: u16) -> Self {
        Self::status_without_headers(status).header("content-type", "application/json")
    }

    fn status_without_headers(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: "{}".into(), delay: Duration::ZERO, gate: None }
    }

    /// With this body.
    pub fn body(self, body: impl Into<Bytes>) -> Self {
        Self { body: body.into(), ..self }
    }

    /// With a header, which replaces one of the same name.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Not before `delay` has passed.
    pub fn after(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    /// Not before `gate` is open.
    pub fn behind(self, gate: &Gate) -> Self {
        Self { gate: Some(gate.clone()), ..self }
    }

    async fn into_response(self) -> Response<Full<Bytes>> {
        // sleep: a slow target is what the test asked for
        tokio::time::sleep(self.delay).await;
        if let Some(gate) = &self.gate {
            gate.opened().await;
        }
        let mut response = Response::new(Full::new(self.body));
        *response.status_mut() = self.status.try_into().expect("a status that exists");
        for (name, value) in &self.headers {
            let name: HeaderName = name.parse().expect("a header's name");
            response.headers_mut().append(name, HeaderValue::from_str(value).expect("a header's value"));
        }
        response
    }
}

impl Gate {
    /// One that lets nothing through yet.
    pub fn closed() -> Self {
        Self(watch::Sender::new(false))
    }

    /// Lets everything through from now on.
    pub fn open(&self) {
        self.0.send_replace(true);
    }

    async fn opened(&self) {
        // We hold the sender ourselves: the channel cannot close.
        let _ = self.0.subscribe().wait_for(|open| *open).await;
    }
}

impl Target {
    /// Starts one on a free port of this machine.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::<State>::default();
        let accepting = tokio::spawn(accept(listener, state.clone())).abort_handle();
        Self { address, state, accepting }
    }

    /// The address of a path on it.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// From now on `path` is answered so.
    pub fn reply(&self, path: &str, reply: Reply) {
        self.on(path, move |_| reply.clone());
    }

    /// From now on `path` is answered as `behaviour` says for each call.
    pub fn on(&self, path: &str, behaviour: impl Fn(&Call) -> Reply + Send + Sync + 'static) {
        self.state.behaviours.lock().unwrap().insert(path.to_owned(), Arc::new(behaviour));
    }

    /// Every call so far, in the order of arrival.
    pub fn calls(&self) -> Vec<Call> {
        self.state.calls.lock().unwrap().clone()
    }

    /// The calls of `path` so far.
    pub fn calls_to(&self, path: &str) -> Vec<Call> {
        self.state.calls.lock().unwrap().iter().filter(|call| call.path == path).cloned().collect()
    }

    /// The most calls of `path` that were being answered at once.
    pub fn busiest(&self, path: &str) -> usize {
        self.state.crowds.lock().unwrap().get(path).map_or(0, |crowd| crowd.most)
    }

    /// The calls for a job so far.
    pub fn calls_for(&self, job_id: &str) -> Vec<Call> {
        self.state.calls.lock().unwrap().iter().filter(|call| call.job_id() == job_id).cloned().collect()
    }

    /// The calls of `path`, once there are at least `count` of them.
    pub async fn called(&self, path: &str, count: usize) -> Vec<Call> {
        let what = format!("{count} calls of {path}");
        eventually(&what, PATIENCE, async || Some(self.calls_to(path)).filter(|calls| calls.len() >= count))
            .await
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, state: Arc<State>) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let state = state.clone();
        tokio::spawn(async move {
            let service = service_fn(|request| state.answer(request));
            // A caller that was killed leaves half a request behind: that is not the target's failure.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

impl Drop for InCrowd<'_> {
    fn drop(&mut self) {
        self.state.crowds.lock().unwrap().get_mut(&self.path).expect("it was entered").now -= 1;
    }
}

impl State {
    fn enter(&self, path: &str) -> InCrowd<'_> {
        let mut crowds = self.crowds.lock().unwrap();
        let crowd = crowds.entry(path.to_owned()).or_default();
        crowd.now += 1;
        crowd.most = crowd.most.max(crowd.now);
        InCrowd { state: self, path: path.to_owned() }
    }

    async fn answer(&self, request: hyper::Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
        let arrived_at = Timestamp::now();
        let (head, body) = request.into_parts();
        let Ok(body) = body.collect().await else { return Ok(Reply::status(400).into_response().await) };
        let call = Call {
            arrived_at,
            method: head.method,
            path: head.uri.path().to_owned(),
            query: head.uri.query().map(str::to_owned),
            headers: head.headers,
            body: body.to_bytes(),
        };
        let _in_crowd = self.enter(&call.path);
        let behaviour = self.behaviours.lock().unwrap().get(&call.path).cloned();
        self.calls.lock().unwrap().push(call.clone());
        let reply = behaviour.map_or_else(Reply::ok, |behaviour| behaviour(&call));
        Ok(reply.into_response().await)
    }
}
