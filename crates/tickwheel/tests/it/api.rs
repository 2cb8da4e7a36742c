//! A thin client for tests: JSON in, JSON out. Knows addresses and cursors, and has no opinion on what is answered.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};

use crate::eventually::PATIENCE;

/// No answer takes longer, the ones that wait for a job included.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// A server's API. Cheap to clone; the clones share their connections.
#[derive(Clone, Debug)]
pub struct Api {
    base: String,
    http: Client<HttpConnector, Full<Bytes>>,
}

/// What was answered.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status, as a number.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

/// The smallest job for an HTTP target, due now: a place to start from.
pub fn http_job(url: &str) -> Value {
    json!({"type": "test", "target": {"http": {"url": url}}})
}

/// The text of a field that has to be there.
#[track_caller]
pub fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_else(|| panic!("no text {field:?} in {value}"))
}

/// The id of a job.
#[track_caller]
pub fn id_of(job: &Value) -> String {
    text(job, "id").to_owned()
}

/// A time field, exactly as answered.
#[track_caller]
pub fn time(value: &Value, field: &str) -> jiff::Timestamp {
    text(value, field).parse().unwrap_or_else(|error| panic!("{field:?} of {value} is no time: {error}"))
}

/// Whether a job has ended.
pub fn has_ended(job: &Value) -> bool {
    matches!(text(job, "status"), "completed" | "failed" | "cancelled" | "skipped")
}

impl Api {
    /// The API at `base`, such as `http://127.0.0.1:7180`.
    pub fn new(base: &str) -> Self {
        Self { base: base.to_owned(), http: Client::builder(TokioExecutor::new()).build_http() }
    }

    /// Sends what the caller made, its address being a path; fails if there is no whole answer.
    pub async fn exchange(&self, mut request: Request<Full<Bytes>>) -> anyhow::Result<Answer> {
        *request.uri_mut() = format!("{}{}", self.base, request.uri()).parse().context("no such address")?;
        let exchange = async {
            let response = self.http.request(request).await?;
            let (head, body) = response.into_parts();
            let body = body.collect().await?.to_bytes();
            Ok(Answer { status: head.status.as_u16(), headers: head.headers, body })
        };
        tokio::time::timeout(ANSWER_TIMEOUT, exchange).await.context("no answer in time")?
    }

    /// Sends a JSON body, or none; fails if there is no whole answer.
    pub async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> anyhow::Result<Answer> {
        let says_its_type = body.is_some() || method == Method::POST;
        let mut request = Request::builder().method(method).uri(path);
        if says_its_type {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let body = body.map_or_else(Bytes::new, |body| body.to_string().into());
        self.exchange(request.body(Full::new(body))?).await
    }

    async fn answer(&self, method: Method, path: &str, body: Option<&Value>) -> Answer {
        let sent = self.send(method.clone(), path, body).await;
        sent.unwrap_or_else(|error| panic!("{method} {path} was not answered: {error:#}"))
    }

    /// Reads.
    pub async fn get(&self, path: &str) -> Answer {
        self.answer(Method::GET, path, None).await
    }

    /// Posts JSON.
    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.answer(Method::POST, path, Some(body)).await
    }

    /// Posts nothing: for calls that need no body.
    pub async fn act(&self, path: &str) -> Answer {
        self.answer(Method::POST, path, None).await
    }

    /// Puts JSON.
    pub async fn put(&self, path: &str, body: &Value) -> Answer {
        self.answer(Method::PUT, path, Some(body)).await
    }

    /// Patches with JSON.
    pub async fn patch(&self, path: &str, body: &Value) -> Answer {
        self.answer(Method::PATCH, path, Some(body)).await
    }

    /// Deletes.
    pub async fn delete(&self, path: &str) -> Answer {
        self.answer(Method::DELETE, path, None).await
    }

    /// Submits a job that is new; the job as answered.
    pub async fn submit(&self, job: &Value) -> Value {
        self.post("/api/v1/jobs", job).await.expect(201).json()
    }

    /// Submits many jobs, all of them fine; the jobs as answered.
    pub async fn submit_batch(&self, jobs: &[Value]) -> Vec<Value> {
        let answer = self.post("/api/v1/jobs/batch", &json!({"jobs": jobs})).await.success().json();
        let results = answer["results"].as_array().expect("a list of results");
        results.iter().map(|result| result.get("job").unwrap_or_else(|| panic!("{result}")).clone()).collect()
    }

    /// One job as it is now.
    pub async fn job(&self, id: &str) -> Value {
        self.get(&format!("/api/v1/jobs/{id}")).await.expect(200).json()
    }

    /// One job once it has ended.
    pub async fn wait(&self, id: &str) -> Value {
        let began = Instant::now();
        loop {
            let answer = self.get(&format!("/api/v1/jobs/{id}?wait=20s")).await;
            match answer.status {
                200 => return answer.json(),
                408 if began.elapsed() < PATIENCE => {}
                status => panic!("waiting for {id}: {status} {}", answer.text()),
            }
        }
    }

    /// The attempts of a job, in the order of their numbers.
    pub async fn attempts(&self, id: &str) -> Vec<Value> {
        let mut attempts = self.list(&format!("/api/v1/jobs/{id}/attempts")).await;
        attempts.sort_by_key(|attempt| attempt["number"].as_u64());
        attempts
    }

    /// A metric's value, summed over its labels; 0 if it was never counted.
    pub async fn metric(&self, name: &str) -> f64 {
        let metrics = self.get("/metrics").await.expect(200).text();
        let samples = metrics.lines().filter_map(|line| line.rsplit_once(' '));
        let ours = samples.filter(|(series, _)| series.split('{').next() == Some(name));
        ours.map(|(_, value)| value.parse::<f64>().expect("a sample is a number")).sum()
    }

    /// Everything on a list, page after page. `path` may have a query.
    pub async fn list(&self, path: &str) -> Vec<Value> {
        let mut items = Vec::new();
        let mut page_path = path.to_owned();
        loop {
            let mut page = self.get(&page_path).await.expect(200).json();
            items.append(page["items"].as_array_mut().expect("a list has items"));
            let Some(cursor) = page["next_cursor"].as_str() else { return items };
            let glue = if path.contains('?') { '&' } else { '?' };
            page_path = format!("{path}{glue}cursor={cursor}");
        }
    }
}

impl Answer {
    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("no JSON ({error}): {}", self.text()))
    }

    /// The stable code of a problem.
    #[track_caller]
    pub fn code(&self) -> String {
        text(&self.json(), "code").to_owned()
    }

    /// The answer, which must have this status.
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text());
        self
    }

    /// The answer, which must be a success.
    #[track_caller]
    pub fn success(self) -> Self {
        let status = StatusCode::from_u16(self.status).expect("a status that was answered");
        assert!(status.is_success(), "{status}: {}", self.text());
        self
    }
}
