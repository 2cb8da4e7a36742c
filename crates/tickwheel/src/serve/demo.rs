//! Something to look at: a tiny endpoint that answers in every way a target can, and a handful of jobs and schedules for it.
//!
//! The endpoint is the one exception to the address guard, by its exact address. Everything goes through the public API like anybody's.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tickwheel_core::ports::{JobQuery, Store};
use tokio::net::{TcpListener, TcpStream};

use crate::client::Client;

/// Where it listens, unless somebody else does: the same address after a restart, so that waiting jobs still find it.
const PORT: u16 = 7181;
const BODY_BYTES_MAX: usize = 64 * 1024;
const WORK_TIME: Duration = Duration::from_secs(2);

/// The endpoint.
#[derive(Clone, Copy, Debug)]
pub struct Echo {
    address: SocketAddr,
}

impl Echo {
    /// Listens on loopback for as long as the process lives.
    pub async fn start() -> anyhow::Result<Self> {
        let listener = match TcpListener::bind(("127.0.0.1", PORT)).await {
            Ok(listener) => listener,
            Err(_) => TcpListener::bind(("127.0.0.1", 0)).await?,
        };
        let address = listener.local_addr()?;
        tracing::info!("demo endpoint: http://{address}/echo (also /slow, /flaky, /broken)");
        tokio::spawn(accept(listener));
        Ok(Self { address })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Submits the demo jobs and schedules to the server at `api`, unless there are jobs to look at already.
    pub async fn submit_jobs(self, store: Arc<dyn Store>, api: SocketAddr) {
        let found = store.list_jobs(JobQuery { limit: 1, ..JobQuery::default() }).await;
        if found.is_ok_and(|page| !page.items.is_empty()) {
            tracing::info!("there are jobs already, so no demo jobs were submitted: tickwheel jobs list");
            return;
        }
        for job in demo_jobs(self.address) {
            if let Err(error) = post(api, "jobs", &job).await {
                tracing::warn!(%error, "a demo job was not accepted");
                return;
            }
            let job_type = job["type"].as_str().unwrap_or_default();
            tracing::info!(job_type, about = %job["metadata"]["about"], "demo job submitted");
        }
        for schedule in demo_schedules(self.address) {
            // One that was created before is left as it is.
            match post(api, "schedules", &schedule).await {
                Ok(()) => tracing::info!(
                    name = %schedule["name"], about = %schedule["job"]["metadata"]["about"], "demo schedule created"
                ),
                Err(error) => {
                    tracing::warn!(%error, name = %schedule["name"], "a demo schedule was not accepted")
                }
            }
        }
        tracing::info!(
            "look at them: tickwheel jobs list; tickwheel schedules list; tickwheel dead-letters list; tickwheel jobs why <ID>"
        );
    }
}

async fn post(api: SocketAddr, what: &str, body: &Value) -> Result<(), crate::failure::Failure> {
    Client::new(&format!("http://{api}"), None)?.post(&[what]).json(body)?.send().await?;
    Ok(())
}

fn demo_jobs(echo: SocketAddr) -> Vec<Value> {
    let target = |path: &str| json!({"http": {"url": format!("http://{echo}/{path}")}});
    let quick_retries = json!({"max_retries": 3, "backoff": "exponential", "initial_delay": "500ms"});
    vec![
        json!({"type": "hello", "target": target("echo"), "payload": {"hello": "world"}, "tags": ["demo"],
            "metadata": {"about": "runs at once"}}),
        json!({"type": "punctual", "target": target("echo"), "delay": "250ms", "tags": ["demo"],
            "metadata": {"about": "runs after 250 ms, not at the next poll"}}),
        json!({"type": "slow_report", "target": target("slow"), "delay": "1s", "queue": "reports", "tags": ["demo"],
            "metadata": {"about": "takes two seconds"}}),
        json!({"type": "flaky", "target": target("flaky"), "priority": "high", "retry": quick_retries, "tags": ["demo"],
            "metadata": {"about": "fails twice, then completes"}}),
        json!({"type": "broken", "target": target("broken"), "tags": ["demo"],
            "metadata": {"about": "is refused and becomes a dead letter"}}),
        json!({"type": "tomorrow", "target": target("echo"), "delay": "1d", "priority": "low", "tags": ["demo"],
            "metadata": {"about": "waits: ask why"}}),
    ]
}

fn demo_schedules(echo: SocketAddr) -> Vec<Value> {
    let job = |job_type: &str, path: &str, about: &str| {
        json!({"type": job_type, "target": {"http": {"url": format!("http://{echo}/{path}")}}, "tags": ["demo"],
            "metadata": {"about": about}})
    };
    vec![
        json!({"name": "heartbeat", "every": "10s", "job": job("heartbeat", "echo", "every ten seconds")}),
        json!({"name": "minutely-report", "cron": "* * * * *", "overlap": "skip",
            "job": job("report", "slow", "every minute, never two at once")}),
        json!({"name": "nightly-backup", "cron": "30 2 * * *", "timezone": "America/New_York", "jitter": "5m",
            "missed": {"policy": "fire_once", "window": "12h"},
            "job": job("backup", "echo", "half past two in New York, also on the days the clock is moved")}),
    ]
}

async fn accept(listener: TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(converse(stream));
    }
}

async fn converse(stream: TcpStream) {
    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer));
    if let Err(error) = connection.await {
        tracing::debug!(%error, "a connection to the demo endpoint ended badly");
    }
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body =
        Limited::new(body, BODY_BYTES_MAX).collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let attempt = head.headers.get("tickwheel-attempt").and_then(|n| n.to_str().ok()?.parse::<u32>().ok());
    let (status, text) = match head.uri.path() {
        "/slow" => {
            tokio::time::sleep(WORK_TIME).await;
            (StatusCode::OK, json!({"pages": 12}).to_string())
        }
        "/flaky" if attempt.unwrap_or(1) < 3 => (StatusCode::SERVICE_UNAVAILABLE, "try again".into()),
        "/broken" => (StatusCode::UNPROCESSABLE_ENTITY, "this can never work".into()),
        _ => (StatusCode::OK, echo(&body, attempt)),
    };
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    Ok(response)
}

fn echo(body: &[u8], attempt: Option<u32>) -> String {
    let received: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
    json!({"received": received, "attempt": attempt}).to_string()
}
