//! Reading a request: bodies, ids and names in paths.
//!
//! A body has a size limit and a time limit, must be of the type that is asked for (`application/json` nearly
//! everywhere) and not compressed, and is read strictly. Nothing here knows what the body means.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::HeaderMap;
use hyper::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use hyper::http::request::Parts;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tickwheel_core::token::AttemptRef;
use tickwheel_core::{JobId, RunId, SessionId};
use tickwheel_protocol::validate::name_fault;
use tickwheel_protocol::{Code, strict_json};

use crate::error::{ApiError, ApiResult};
use crate::memory::Memory;
use crate::state::ApiState;

/// How long a client may take to send a body.
const BODY_READ_TIMEOUT: Duration = Duration::from_secs(30);

/// A required body, as the bytes that came and that are known to be strict JSON's size and type. The caller parses.
pub struct RawJson<const BATCH: bool>(pub Bytes);

impl<const BATCH: bool> FromRequest<ApiState> for RawJson<BATCH> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &ApiState) -> ApiResult<Self> {
        let limits = &state.limits;
        let bytes_max = if BATCH { limits.batch_bytes_max } else { limits.body_bytes_max };
        require_plain(request.headers(), JSON)?;
        read_body(request, bytes_max, &state.memory).await.map(Self)
    }
}

/// A body that may be left out, in which case everything in it has its default.
pub struct OptionalJson<T>(pub T);

impl<T: DeserializeOwned + Default> FromRequest<ApiState> for OptionalJson<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &ApiState) -> ApiResult<Self> {
        let headers = request.headers().clone();
        let body = read_body(request, state.limits.body_bytes_max, &state.memory).await?;
        if body.is_empty() {
            return Ok(Self(T::default()));
        }
        require_plain(&headers, JSON)?;
        Ok(Self(strict_json::read(&body, state.limits.json_depth_max)?))
    }
}

/// A required body of one type.
pub struct StrictJson<T>(pub T);

impl<T: DeserializeOwned> FromRequest<ApiState> for StrictJson<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &ApiState) -> ApiResult<Self> {
        let RawJson::<false>(body) = RawJson::from_request(request, state).await?;
        Ok(Self(strict_json::read(&body, state.limits.json_depth_max)?))
    }
}

/// The body of a call that needs none: nothing, or an empty object.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

/// A required body that is a calendar file.
pub struct CalendarText(pub String);

impl FromRequest<ApiState> for CalendarText {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &ApiState) -> ApiResult<Self> {
        require_plain(request.headers(), "text/calendar")?;
        let body = read_body(request, state.limits.body_bytes_max, &state.memory).await?;
        match String::from_utf8(body.into()) {
            Ok(text) => Ok(Self(text)),
            Err(_) => Err(ApiError::new(Code::ValidationFailed, "the calendar is not UTF-8")),
        }
    }
}

const JSON: &str = "application/json";

fn require_plain(headers: &HeaderMap, expected: &str) -> ApiResult<()> {
    let refuse = |detail: &str| Err(ApiError::new(Code::UnsupportedMediaType, detail));
    if headers.get(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
        return refuse("the body must not be compressed");
    }
    let media_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case(expected) {
        return refuse(&format!("the content type must be {expected}"));
    }
    Ok(())
}

async fn read_body(request: Request, bytes_max: usize, memory: &Memory) -> ApiResult<Bytes> {
    let too_large =
        || ApiError::new(Code::BodyTooLarge, format!("the body must not be larger than {bytes_max} bytes"));
    // Refused before a byte of it is read, where the client says how much it is going to send.
    let announced =
        request.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|bytes| bytes > bytes_max as u64) {
        return Err(too_large());
    }
    match tokio::time::timeout(BODY_READ_TIMEOUT, collect(request.into_body(), bytes_max, memory)).await {
        Ok(Ok(Some(body))) => Ok(body),
        Ok(Ok(None)) => Err(too_large()),
        Ok(Err(refused)) => Err(refused),
        Err(_) => Err(ApiError::new(Code::RequestTimeout, "the body did not arrive in time")),
    }
}

/// The whole of a body, which takes room only for what has arrived; `None`: it is larger than it may be.
async fn collect(mut body: Body, bytes_max: usize, memory: &Memory) -> ApiResult<Option<Bytes>> {
    let mut room = memory.reserve();
    let (mut only, mut whole) = (Bytes::new(), BytesMut::new());
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| ApiError::new(Code::InvalidJson, "the body broke off"))?;
        let Ok(data) = frame.into_data() else { continue };
        if only.len() + whole.len() + data.len() > bytes_max {
            return Ok(None);
        }
        room.grow(data.len())?;
        // Most bodies come in one piece and need not be put together.
        if only.is_empty() && whole.is_empty() {
            only = data;
        } else {
            whole.extend_from_slice(&std::mem::take(&mut only));
            whole.extend_from_slice(&data);
        }
    }
    Ok(Some(room.hold(if whole.is_empty() { only } else { whole.freeze() })))
}

/// The id of a job in a path.
pub struct Id(pub JobId);

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> ApiResult<Self> {
        let text = path::<String, S>(parts, state).await?;
        parse_id(&text).map(Self)
    }
}

/// The id of a job and the number of one of its attempts in a path.
pub struct IdAndAttempt(pub JobId, pub u32);

impl<S: Send + Sync> FromRequestParts<S> for IdAndAttempt {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> ApiResult<Self> {
        let (id, number) = path::<(String, String), S>(parts, state).await?;
        let number = number
            .parse()
            .map_err(|_| ApiError::new(Code::InvalidId, "the number of an attempt is a positive integer"))?;
        Ok(Self(parse_id(&id)?, number))
    }
}

/// The id of a run of a workflow in a path.
pub struct Run(pub RunId);

impl<S: Send + Sync> FromRequestParts<S> for Run {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> ApiResult<Self> {
        let text = path::<String, S>(parts, state).await?;
        parse_run_id(&text).map(Self)
    }
}

/// The id of a run and what one of its tasks is called, in a path.
pub struct RunAndTask(pub RunId, pub String);

impl<S: Send + Sync> FromRequestParts<S> for RunAndTask {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> ApiResult<Self> {
        let (id, task) = path::<(String, String), S>(parts, state).await?;
        Ok(Self(parse_run_id(&id)?, task))
    }
}

/// The id of a worker's session in a path.
pub struct WorkerId(pub SessionId);

impl<S: Send + Sync> FromRequestParts<S> for WorkerId {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> ApiResult<Self> {
        let text = path::<String, S>(parts, state).await?;
        let parsed = text.parse().map(Self);
        parsed.map_err(|_| ApiError::new(Code::InvalidId, "the id of a worker is a UUID"))
    }
}

/// The name of something in a path.
pub struct Name(pub String);

impl FromRequestParts<ApiState> for Name {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> ApiResult<Self> {
        let name = path::<String, ApiState>(parts, state).await?;
        match name_fault(&name, &state.limits) {
            None => Ok(Self(name)),
            Some((_, detail)) => Err(ApiError::new(Code::InvalidParameter, format!("the name {detail}"))),
        }
    }
}

/// The attempt whose token is in the path.
pub struct Token(pub AttemptRef);

impl FromRequestParts<ApiState> for Token {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> ApiResult<Self> {
        let token = path::<String, ApiState>(parts, state).await?;
        state.tokens.verify(&token).map(Self).ok_or_else(|| ApiError::not_found("attempt"))
    }
}

/// The attempt whose token is in the path, and the key of one of its effects.
pub struct TokenAndKey(pub AttemptRef, pub String);

impl FromRequestParts<ApiState> for TokenAndKey {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> ApiResult<Self> {
        let (token, key) = path::<(String, String), ApiState>(parts, state).await?;
        let attempt = state.tokens.verify(&token).ok_or_else(|| ApiError::not_found("attempt"))?;
        match name_fault(&key, &state.limits) {
            None => Ok(Self(attempt, key)),
            Some((_, detail)) => Err(ApiError::new(Code::InvalidParameter, format!("the key {detail}"))),
        }
    }
}

async fn path<T: DeserializeOwned + Send, S: Send + Sync>(parts: &mut Parts, state: &S) -> ApiResult<T> {
    match Path::<T>::from_request_parts(parts, state).await {
        Ok(Path(value)) => Ok(value),
        Err(_) => Err(ApiError::new(Code::InvalidId, "the path is not valid UTF-8")),
    }
}

/// The id of a run.
pub fn parse_run_id(text: &str) -> ApiResult<RunId> {
    text.parse().map_err(|_| ApiError::new(Code::InvalidId, "the id of a run is a UUID"))
}

fn parse_id(text: &str) -> ApiResult<JobId> {
    text.parse().map_err(|_| ApiError::new(Code::InvalidId, "the id of a job is a UUID"))
}
