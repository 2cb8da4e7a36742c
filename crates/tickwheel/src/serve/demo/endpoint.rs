//! The demo's endpoint: answers in every way a target can, and does the work of the demo's workflow.
//!
//! What it answers depends on the request alone: after a restart it goes on as if nothing had happened.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};

const BODY_BYTES_MAX: usize = 64 * 1024;
const WORK_TIME: Duration = Duration::from_secs(2);
const STEP_TIME: Duration = Duration::from_millis(800);
/// What the shop has in its files.
const FILES: [(&str, u64); 6] = [
    ("orders-1.csv", 412),
    ("orders-2.csv", 388),
    ("orders-3.csv", 97),
    ("returns.csv", 23),
    ("customers.csv", 530),
    ("prices.csv", 64),
];
/// The one that cannot be read at the first attempt.
const BUSY_FILE: &str = "returns.csv";

/// Listens on loopback for as long as the process lives: on `port`, unless somebody else does.
pub async fn start(port: u16) -> anyhow::Result<SocketAddr> {
    let listener = match TcpListener::bind(("127.0.0.1", port)).await {
        Ok(listener) => listener,
        Err(_) => TcpListener::bind(("127.0.0.1", 0)).await?,
    };
    let address = listener.local_addr()?;
    tokio::spawn(accept(listener));
    Ok(address)
}

async fn accept(listener: TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(converse(stream));
    }
}

async fn converse(stream: TcpStream) {
    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer));
    if let Err(error) = connection.await {
        tracing::debug!(%error, "a connection to the demo endpoint ended with an error");
    }
}

/// What an answer depends on.
struct Asked {
    body: Value,
    attempt: Option<u32>,
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = Limited::new(body, BODY_BYTES_MAX).collect().await;
    let body = body.map(|body| body.to_bytes()).unwrap_or_default();
    let asked = Asked {
        body: serde_json::from_slice(&body).unwrap_or_default(),
        attempt: head.headers.get("tickwheel-attempt").and_then(|n| n.to_str().ok()?.parse().ok()),
    };
    tokio::time::sleep(time_for(head.uri.path())).await;
    let (status, text) = match result(head.uri.path(), &asked) {
        Ok(result) => (StatusCode::OK, result.to_string()),
        Err((status, why)) => (status, why.to_owned()),
    };
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    Ok(response)
}

fn time_for(path: &str) -> Duration {
    match path {
        "/slow" => WORK_TIME,
        path if path.starts_with("/etl/") => STEP_TIME,
        _ => Duration::ZERO,
    }
}

fn result(path: &str, asked: &Asked) -> Result<Value, (StatusCode, &'static str)> {
    let is_early = |enough: u32| asked.attempt.unwrap_or(1) < enough;
    match path {
        "/slow" => Ok(json!({"pages": 12})),
        "/flaky" if is_early(3) => Err((StatusCode::SERVICE_UNAVAILABLE, "try again")),
        "/broken" => Err((StatusCode::UNPROCESSABLE_ENTITY, "this can never work")),
        "/etl/extract" => Ok(extracted(&asked.body)),
        "/etl/transform" if is_early(2) && asked.body["file"]["name"] == BUSY_FILE => {
            Err((StatusCode::SERVICE_UNAVAILABLE, "the file is being written"))
        }
        "/etl/transform" => Ok(transformed(&asked.body["file"])),
        "/etl/load" => Ok(loaded(&asked.body["parts"])),
        _ => Ok(json!({"received": asked.body, "attempt": asked.attempt})),
    }
}

fn extracted(request: &Value) -> Value {
    let files: Vec<Value> = FILES.iter().map(|(name, lines)| json!({"name": name, "lines": lines})).collect();
    json!({"day": request["day"], "files": files})
}

/// Every tenth line is none of an order.
fn transformed(file: &Value) -> Value {
    let lines = file["lines"].as_u64().unwrap_or_default();
    json!({"name": file["name"], "rows": lines - lines / 10, "rejected": lines / 10})
}

fn loaded(parts: &Value) -> Value {
    let sum = |field: &str| -> u64 {
        parts.as_array().into_iter().flatten().filter_map(|part| part[field].as_u64()).sum()
    };
    json!({"rows": sum("rows"), "rejected": sum("rejected")})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(path: &str, attempt: u32, body: Value) -> Result<Value, (StatusCode, &'static str)> {
        result(path, &Asked { body, attempt: Some(attempt) })
    }

    #[test]
    fn what_is_extracted_is_transformed_and_loaded() {
        let extracted = ask("/etl/extract", 1, json!({"day": "today"})).unwrap();
        assert_eq!(extracted["day"], "today");
        let files = extracted["files"].as_array().unwrap();
        let parts: Vec<Value> =
            files.iter().map(|file| ask("/etl/transform", 2, json!({"file": file})).unwrap()).collect();
        let loaded = ask("/etl/load", 1, json!({"parts": parts})).unwrap();
        let lines: u64 = FILES.iter().map(|(_, lines)| lines).sum();
        assert_eq!(loaded["rows"].as_u64().unwrap() + loaded["rejected"].as_u64().unwrap(), lines);
    }

    #[test]
    fn one_file_takes_a_second_attempt() {
        let transform =
            |attempt, name| ask("/etl/transform", attempt, json!({"file": {"name": name, "lines": 10}}));
        assert!(transform(1, BUSY_FILE).is_err());
        assert!(transform(2, BUSY_FILE).is_ok());
        assert!(transform(1, "orders-1.csv").is_ok());
    }
}
