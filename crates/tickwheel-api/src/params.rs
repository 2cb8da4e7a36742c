//! Query strings: typed, and as strict as bodies. An empty value is the same as leaving the parameter out.

use axum::extract::FromRequestParts;
use hyper::http::request::Parts;
use serde::de::DeserializeOwned;
use tickwheel_core::ports::DeadLetterCursor;
use tickwheel_core::{JobId, RunId, Timestamp};
use tickwheel_protocol::page::{LIMIT_DEFAULT, LIMIT_MAX, decode_cursor, decode_text_cursor, encode_cursor};
use tickwheel_protocol::{Code, Problem};
use url::form_urlencoded;
use uuid::Uuid;

use crate::error::{ApiError, ApiResult};
use crate::lists::PageSize;
use crate::state::ApiState;

/// The parameters of a call.
pub struct Params<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> ApiResult<Self> {
        read(parts.uri.query().unwrap_or_default()).map(Self).map_err(ApiError)
    }
}

fn read<T: DeserializeOwned>(query: &str) -> Result<T, Problem> {
    let given: Vec<_> =
        form_urlencoded::parse(query.as_bytes()).filter(|(_, value)| !value.is_empty()).collect();
    // No parameter can have them, and not every store can look for them.
    if let Some((name, _)) = given.iter().find(|(_, value)| value.chars().any(char::is_control)) {
        let detail = format!("{name}: must not contain control characters");
        return Err(Problem::new(Code::InvalidParameter, detail));
    }
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(given).finish();
    let deserializer = serde_urlencoded::Deserializer::new(form_urlencoded::parse(query.as_bytes()));
    serde_path_to_error::deserialize(deserializer).map_err(|error| {
        let message = error.inner().to_string();
        if message.starts_with("unknown field") {
            return Problem::new(Code::UnknownParameter, message.replace("field", "parameter"));
        }
        Problem::new(Code::InvalidParameter, format!("{}: {message}", error.path()))
    })
}

/// The number of items of a page.
pub fn page_limit(limit: Option<usize>) -> ApiResult<usize> {
    match limit.unwrap_or(LIMIT_DEFAULT) {
        limit @ 1..=LIMIT_MAX => Ok(limit),
        _ => Err(ApiError::new(Code::InvalidParameter, format!("limit: must be from 1 to {LIMIT_MAX}"))),
    }
}

/// How large a page may be of items as large as a payload.
pub fn page_size(state: &ApiState, limit: Option<usize>) -> ApiResult<PageSize> {
    Ok(PageSize { items_max: page_limit(limit)?, bytes_max: state.limits.page_bytes_max, step: 32 })
}

const JOBS: u8 = b'j';
const DEAD_LETTERS: u8 = b'd';
const SCHEDULES: u8 = b's';
const FIRES: u8 = b'f';
const WORKFLOWS: u8 = b'w';
const VERSIONS: u8 = b'v';
const RUNS: u8 = b'r';
const ITEMS: u8 = b'i';
const ATTEMPTS: u8 = b'a';

/// The cursor that continues a list of jobs after this one.
pub fn job_cursor(after: JobId) -> String {
    encode_cursor(JOBS, after.as_uuid().as_bytes())
}

/// The job a cursor stands for.
pub fn parse_job_cursor(cursor: &str) -> ApiResult<JobId> {
    decode_cursor(JOBS, cursor).map(|id| JobId::from_uuid(Uuid::from_bytes(id))).ok_or_else(invalid_cursor)
}

/// The cursor that continues a list of dead letters after this one.
pub fn dead_letter_cursor(after: DeadLetterCursor) -> String {
    let mut place = [0; 24];
    place[..8].copy_from_slice(&after.failed_at.as_millis().to_be_bytes());
    place[8..].copy_from_slice(after.id.as_uuid().as_bytes());
    encode_cursor(DEAD_LETTERS, &place)
}

/// The dead letter a cursor stands for.
pub fn parse_dead_letter_cursor(cursor: &str) -> ApiResult<DeadLetterCursor> {
    let place: [u8; 24] = decode_cursor(DEAD_LETTERS, cursor).ok_or_else(invalid_cursor)?;
    let (failed_at, id) = place.split_at(8);
    let failed_at = i64::from_be_bytes(failed_at.try_into().expect("split after eight bytes"));
    let id = Uuid::from_slice(id).expect("sixteen bytes are left");
    Ok(DeadLetterCursor { failed_at: Timestamp::from_millis(failed_at), id: JobId::from_uuid(id) })
}

/// The cursor that continues a list of schedules after this name.
pub fn schedule_cursor(after: &str) -> String {
    encode_cursor(SCHEDULES, after.as_bytes())
}

/// The name a cursor stands for.
pub fn parse_schedule_cursor(cursor: &str) -> ApiResult<String> {
    decode_text_cursor(SCHEDULES, cursor).ok_or_else(invalid_cursor)
}

/// The cursor that continues a list of firings before this moment.
pub fn fire_cursor(before: Timestamp) -> String {
    encode_cursor(FIRES, &before.as_millis().to_be_bytes())
}

/// The moment a cursor stands for.
pub fn parse_fire_cursor(cursor: &str) -> ApiResult<Timestamp> {
    let place: [u8; 8] = decode_cursor(FIRES, cursor).ok_or_else(invalid_cursor)?;
    Ok(Timestamp::from_millis(i64::from_be_bytes(place)))
}

/// The cursor that continues a list of workflows after this name.
pub fn workflow_cursor(after: &str) -> String {
    encode_cursor(WORKFLOWS, after.as_bytes())
}

/// The name a cursor stands for.
pub fn parse_workflow_cursor(cursor: &str) -> ApiResult<String> {
    decode_text_cursor(WORKFLOWS, cursor).ok_or_else(invalid_cursor)
}

/// The cursor that continues a list of versions before this one.
pub fn version_cursor(before: u32) -> String {
    encode_cursor(VERSIONS, &before.to_be_bytes())
}

/// The version a cursor stands for.
pub fn parse_version_cursor(cursor: &str) -> ApiResult<u32> {
    decode_cursor(VERSIONS, cursor).map(u32::from_be_bytes).ok_or_else(invalid_cursor)
}

/// The cursor that continues a list of runs after this one.
pub fn run_cursor(after: RunId) -> String {
    encode_cursor(RUNS, after.as_uuid().as_bytes())
}

/// The run a cursor stands for.
pub fn parse_run_cursor(cursor: &str) -> ApiResult<RunId> {
    decode_cursor(RUNS, cursor).map(|id| RunId::from_uuid(Uuid::from_bytes(id))).ok_or_else(invalid_cursor)
}

/// The cursor that continues a list of elements with this number.
pub fn item_cursor(next: u32) -> String {
    encode_cursor(ITEMS, &next.to_be_bytes())
}

/// The number a cursor stands for.
pub fn parse_item_cursor(cursor: &str) -> ApiResult<u32> {
    decode_cursor(ITEMS, cursor).map(u32::from_be_bytes).ok_or_else(invalid_cursor)
}

/// The cursor that continues a list of attempts after this one.
pub fn attempt_cursor(after: u32) -> String {
    encode_cursor(ATTEMPTS, &after.to_be_bytes())
}

/// The number of the attempt a cursor stands for.
pub fn parse_attempt_cursor(cursor: &str) -> ApiResult<u32> {
    decode_cursor(ATTEMPTS, cursor).map(u32::from_be_bytes).ok_or_else(invalid_cursor)
}

fn invalid_cursor() -> ApiError {
    ApiError::new(Code::InvalidCursor, "pass next_cursor of the same list, unchanged")
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use tickwheel_protocol::{Span, Status};

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Query {
        status: Option<Status>,
        limit: Option<usize>,
        wait: Option<Span>,
    }

    #[test]
    fn parameters_are_typed_and_empty_ones_are_left_out() {
        let query: Query = read("status=running&limit=&wait=30").unwrap();
        assert_eq!(
            query,
            Query { status: Some(Status::Running), limit: None, wait: Some(Span::from_millis(30_000)) }
        );
    }

    #[test]
    fn unknown_repeated_and_senseless_parameters_are_refused() {
        let code = |query: &str| read::<Query>(query).unwrap_err().code;
        assert_eq!(code("stauts=running"), "unknown_parameter");
        for query in ["status=odd", "limit=ten", "limit=-1", "wait=soon", "limit=1&limit=2"] {
            assert_eq!(code(query), "invalid_parameter", "{query}");
        }
    }

    #[test]
    fn cursors_come_back_and_one_list_does_not_take_the_other_ones() {
        let id = JobId::from_uuid(Uuid::from_u128(7));
        let place = DeadLetterCursor { failed_at: Timestamp::from_millis(1_234), id };
        assert_eq!(parse_job_cursor(&job_cursor(id)).unwrap(), id);
        assert_eq!(parse_dead_letter_cursor(&dead_letter_cursor(place)).unwrap(), place);
        assert!(parse_job_cursor(&dead_letter_cursor(place)).is_err());
        assert!(parse_dead_letter_cursor(&job_cursor(id)).is_err());
        let at = Timestamp::from_millis(1_234);
        assert_eq!(parse_fire_cursor(&fire_cursor(at)).unwrap(), at);
        assert_eq!(parse_schedule_cursor(&schedule_cursor("näme")).unwrap(), "näme");
        assert!(parse_fire_cursor(&schedule_cursor("12345678")).is_err());
        assert!(parse_schedule_cursor(&job_cursor(id)).is_err());
        let run = RunId::from_uuid(Uuid::from_u128(7));
        assert_eq!(parse_run_cursor(&run_cursor(run)).unwrap(), run);
        assert_eq!(parse_workflow_cursor(&workflow_cursor("etl")).unwrap(), "etl");
        assert_eq!(parse_version_cursor(&version_cursor(3)).unwrap(), 3);
        assert_eq!(parse_item_cursor(&item_cursor(3)).unwrap(), 3);
        assert!(parse_run_cursor(&job_cursor(id)).is_err());
        assert!(parse_item_cursor(&version_cursor(3)).is_err());
        assert!(parse_workflow_cursor(&schedule_cursor("etl")).is_err());
    }
}
