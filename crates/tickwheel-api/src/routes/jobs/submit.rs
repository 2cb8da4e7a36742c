//! Submitting jobs, one or many. When the call answers, the job is on disk.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, LOCATION};
use hyper::{HeaderMap, StatusCode};
use tickwheel_core::ports::{Creation, NewJob, UnknownParent};
use tickwheel_core::{JobId, JobSpec, Timestamp};
use tickwheel_protocol::problem::FieldCode;
use tickwheel_protocol::validate::Validate;
use tickwheel_protocol::{
    BatchItem, BatchResult, BatchSubmit, Code, FieldError, Job, Problem, ReadBatch, SubmitJob, pointer,
    strict_json,
};

use crate::blocking::run_blocking;
use crate::convert::{self, Submission};
use crate::error::{ApiError, ApiResult};
use crate::extract::RawJson;
use crate::memory::Held;
use crate::state::ApiState;

const IDEMPOTENCY_KEY: &str = "idempotency-key";
const TRACEPARENT: &str = "traceparent";
/// The size of a small job in an answer.
const JOB_BYTES_USUAL: usize = 1_024;

/// Submit a job
///
/// If the same idempotency key was used with the same body, the answer is 200 and the first job. With a different body
/// it is 409.
#[utoipa::path(post, operation_id = "submit_job", path = "/api/v1/jobs", tag = "jobs", request_body = SubmitJob,
    params(("Idempotency-Key" = Option<String>, Header, description = "Same as the field `idempotency_key`")),
    responses(
        (status = 201, description = "The job is stored", body = Job),
        (status = 200, description = "The job was stored before, with the same idempotency key", body = Job)))]
pub async fn submit(
    State(state): State<ApiState>,
    headers: HeaderMap,
    RawJson(body): RawJson<false>,
) -> ApiResult<Response> {
    let mut job: SubmitJob = strict_json::read(&body, state.limits.json_depth_max)?;
    job.idempotency_key = agreed_key(&headers, job.idempotency_key.take())?;
    let new = read_request(job, text(&body), &headers, &state, state.now())?;
    let spec = new.job.spec.clone();
    match state.scheduler.submit(vec![new]).await?.pop() {
        Some(Creation::Created(job)) => created_answer(&job),
        Some(Creation::Existing(job)) => Ok(Json(convert::job(&job)?).into_response()),
        Some(Creation::Conflict(first)) => Err(conflict(first).into()),
        Some(Creation::Refused(unknown)) => Err(unknown_parent(&spec, unknown).into()),
        None => Err(ApiError::new(Code::Internal, "the scheduler gave no answer")),
    }
}

/// A job that was stored now, and its location.
pub fn created_answer(job: &tickwheel_core::Job) -> ApiResult<Response> {
    let location = format!("/api/v1/jobs/{}", job.id);
    Ok((StatusCode::CREATED, [(LOCATION, location)], Json(convert::job(job)?)).into_response())
}

/// Submit many jobs
///
/// The server checks each job by itself. The results are in the order of the jobs.
#[utoipa::path(post, operation_id = "submit_jobs", path = "/api/v1/jobs/batch", tag = "jobs", request_body = BatchSubmit,
    responses((status = 200, description = "One result per job", body = BatchResult)))]
pub async fn submit_batch(
    State(state): State<ApiState>,
    headers: HeaderMap,
    RawJson(body): RawJson<true>,
) -> ApiResult<Response> {
    if headers.contains_key(IDEMPOTENCY_KEY) {
        let detail =
            "the Idempotency-Key header is for one job; give each job of a batch its own idempotency_key";
        return Err(ApiError::new(Code::InvalidParameter, detail));
    }
    let (reader, read) = (state.clone(), body.clone());
    // Megabytes of JSON take their time: not on a thread that others wait for.
    let requests = run_blocking(move || read_batch(&read, &headers, &reader)).await??;

    let mut accepted = Vec::with_capacity(requests.len());
    let requests: Vec<Result<Arc<JobSpec>, Problem>> = requests
        .into_iter()
        .map(|request| {
            let new = request?;
            let spec = new.job.spec.clone();
            accepted.push(new);
            Ok(spec)
        })
        .collect();
    let mut answers = state.scheduler.submit(accepted).await?.into_iter();
    let count = requests.len();
    let requests = requests.into_iter().enumerate();
    let results = requests.map(|(index, request)| batch_item(index, request, &mut answers));
    let text = batch_answer(count, results)?;
    // As large as what was asked for, about: it takes the room of the request until it is fetched.
    Ok(([(CONTENT_TYPE, "application/json")], Bytes::from_owner(Held::new(text, body))).into_response())
}

/// A [`BatchResult`](tickwheel_protocol::BatchResult), written item by item. Each item is dropped once it is written.
fn batch_answer(count: usize, results: impl Iterator<Item = ApiResult<BatchItem>>) -> ApiResult<Vec<u8>> {
    let mut text = Vec::with_capacity(count * JOB_BYTES_USUAL);
    text.extend_from_slice(br#"{"results":["#);
    for (index, item) in results.enumerate() {
        if index > 0 {
            text.push(b',');
        }
        serde_json::to_writer(&mut text, &item?).expect("what is answered can be written as JSON");
    }
    text.extend_from_slice(b"]}");
    Ok(text)
}

fn batch_item(
    index: usize,
    request: Result<Arc<JobSpec>, Problem>,
    answers: &mut impl Iterator<Item = Creation<tickwheel_core::Job, UnknownParent>>,
) -> ApiResult<BatchItem> {
    let spec = match request {
        Ok(spec) => spec,
        Err(problem) => return Ok(BatchItem::Error(problem)),
    };
    match answers.next() {
        Some(Creation::Created(job) | Creation::Existing(job)) => {
            Ok(BatchItem::Job(Box::new(convert::job(&job)?)))
        }
        Some(Creation::Conflict(first)) => Ok(BatchItem::Error(conflict(first))),
        Some(Creation::Refused(unknown)) => {
            Ok(BatchItem::Error(unknown_parent(&spec, unknown).below(&place_in_batch(index))))
        }
        None => Err(ApiError::new(Code::Internal, "the scheduler gave too few answers")),
    }
}

type Requests = Vec<Result<NewJob, Problem>>;

fn read_batch(body: &Bytes, headers: &HeaderMap, state: &ApiState) -> Result<Requests, Problem> {
    let (limits, now) = (&state.limits, state.now());
    // The batch itself is two levels around its jobs.
    let batch: ReadBatch<'_> = strict_json::read(body, limits.json_depth_max + 2)?;
    if batch.jobs.len() > limits.batch_jobs_max {
        let detail = format!("must not have more than {} entries", limits.batch_jobs_max);
        let field = FieldError { pointer: "/jobs".into(), code: FieldCode::TooMany, detail };
        return Err(Problem::invalid(vec![field]));
    }
    let read_one = |(index, text): (usize, &str)| {
        strict_json::read_checked(text.as_bytes())
            .and_then(|job| read_request(job, text, headers, state, now))
            .map_err(|problem| problem.below(&place_in_batch(index)))
    };
    Ok(batch.jobs.iter().map(|raw| raw.get()).enumerate().map(read_one).collect())
}

fn place_in_batch(index: usize) -> String {
    format!("/jobs/{index}")
}

fn read_request(
    job: SubmitJob,
    text: &str,
    headers: &HeaderMap,
    state: &ApiState,
    now: Timestamp,
) -> Result<NewJob, Problem> {
    job.validate(&state.limits)?;
    state.permissions.check_job(&job)?;
    let traceparent = headers.get(TRACEPARENT).and_then(|value| value.to_str().ok());
    convert::new_job(Submission { job, text, traceparent }, now)
}

fn text(body: &Bytes) -> &str {
    std::str::from_utf8(body).expect("what was read as JSON is UTF-8")
}

fn header_key(headers: &HeaderMap) -> ApiResult<Option<String>> {
    let Some(value) = headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    match std::str::from_utf8(value.as_bytes()) {
        Ok(key) => Ok(Some(key.to_owned())),
        Err(_) => Err(ApiError::new(Code::InvalidParameter, "Idempotency-Key: must be UTF-8")),
    }
}

/// The idempotency key, from the header or the field.
pub fn agreed_key(headers: &HeaderMap, field: Option<String>) -> ApiResult<Option<String>> {
    match (header_key(headers)?, field) {
        (Some(header), Some(field)) if header != field => Err(ApiError::new(
            Code::IdempotencyKeyMismatch,
            "the Idempotency-Key header and the field idempotency_key differ",
        )),
        (header, field) => Ok(header.or(field)),
    }
}

/// The idempotency key belongs to another request, which made this job.
pub fn conflict(first: JobId) -> Problem {
    let detail = format!("the idempotency key was used with another body, for job {first}");
    Problem::new(Code::IdempotencyConflict, detail)
}

/// Another tenant's job is as unknown as one that never existed.
fn unknown_parent(spec: &JobSpec, UnknownParent(parent): UnknownParent) -> Problem {
    let mut pointer = "/depends_on".to_owned();
    if let Some(index) = spec.depends_on.iter().position(|id| *id == parent) {
        pointer::push_index(&mut pointer, index);
    }
    let detail = format!("there is no job {parent}");
    Problem::at(Code::UnknownParent, FieldError { pointer, code: FieldCode::InvalidValue, detail })
}
