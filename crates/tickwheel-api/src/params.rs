//! Query strings: typed, and as strict as bodies. An empty text is the same as leaving the parameter out; any other has
//! a value.

use std::borrow::Cow;
use std::collections::BTreeSet;

use axum::extract::{FromRequestParts, Request};
use hyper::http::request::Parts;
use serde::de::{DeserializeOwned, IntoDeserializer};
use serde::{Deserialize, Deserializer};
use tickwheel_core::log::LogPlace;
use tickwheel_core::ports::DeadLetterCursor;
use tickwheel_core::{JobId, RunId, SessionId, Timestamp};
use tickwheel_protocol::page::{LIMIT_DEFAULT, LIMIT_MAX, decode_cursor, decode_text_cursor, encode_cursor};
use tickwheel_protocol::strict_json::plain_words;
use tickwheel_protocol::{Code, Problem};
use url::form_urlencoded;
use utoipa::IntoParams;
use uuid::Uuid;

use crate::error::{ApiError, ApiResult};
use crate::lists::PageSize;
use crate::openapi::query_parameters;
use crate::state::ApiState;

/// Texts that filter nothing and lead nowhere if they are empty: whoever follows pages need not treat the first one
/// differently.
pub const MAY_BE_EMPTY: [&str; 6] = ["cursor", "queue", "schedule_id", "tag", "type", "workflow"];

/// The parameters of a call.
pub struct Params<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> ApiResult<Self> {
        read(parts.uri.query().unwrap_or_default()).map(Self).map_err(ApiError)
    }
}

/// Refuses parameters that the call does not have: somebody who misspells one must not believe that it is heeded.
pub fn refuse_unknown(request: &Request, route: &str) -> ApiResult<()> {
    let Some(query) = request.uri().query() else { return Ok(()) };
    let Some(known) = query_parameters(request.method().as_str(), route) else { return Ok(()) };
    let mut given = form_urlencoded::parse(query.as_bytes()).map(|(name, _)| name);
    let Some(unknown) = given.find(|name| !known.iter().any(|known| known == name)) else { return Ok(()) };
    let detail = match known {
        [] => format!("unknown parameter `{unknown}`: this call has none"),
        known => format!("unknown parameter `{unknown}`, expected one of `{}`", known.join("`, `")),
    };
    Err(ApiError::new(Code::UnknownParameter, detail))
}

fn read<T: DeserializeOwned>(query: &str) -> Result<T, Problem> {
    let refused =
        |name: &str, detail: &str| Problem::new(Code::InvalidParameter, format!("{name}: {detail}"));
    let is_given = |(name, value): &(Cow<'_, str>, Cow<'_, str>)| {
        !value.is_empty() || !MAY_BE_EMPTY.contains(&name.as_ref())
    };
    let given: Vec<_> = form_urlencoded::parse(query.as_bytes()).filter(is_given).collect();
    for (name, value) in &given {
        if value.is_empty() {
            return Err(refused(name, "must not be empty; leave it out"));
        }
        // No parameter can have them, and not every store can look for them.
        if value.chars().any(char::is_control) {
            return Err(refused(name, "must not contain control characters"));
        }
    }
    let given = gathered(given);
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(given).finish();
    let deserializer = serde_urlencoded::Deserializer::new(form_urlencoded::parse(query.as_bytes()));
    serde_path_to_error::deserialize(deserializer).map_err(|error| {
        let message = error.inner().to_string();
        let quoted = |prefix: &str| message.strip_prefix(prefix)?.split('`').next();
        if message.starts_with("unknown field") {
            return Problem::new(Code::UnknownParameter, message.replace("field", "parameter"));
        }
        if let Some(name) = quoted("duplicate field `") {
            return refused(name, "must be given only once");
        }
        if let Some(name) = quoted("missing field `") {
            return refused(name, "is required");
        }
        refused(&error.path().to_string(), &plain_words(&message))
    })
}

/// Parameters that may be given several times.
const REPEATABLE: [&str; 1] = ["tag"];
/// Stands between the values of such a parameter. No value has it: it is a control character.
const BETWEEN: char = '\n';

type Given<'q> = (Cow<'q, str>, Cow<'q, str>);

/// Each parameter that may be given several times as one.
fn gathered(given: Vec<Given<'_>>) -> Vec<Given<'_>> {
    let mut gathered: Vec<Given<'_>> = Vec::with_capacity(given.len());
    for (name, value) in given {
        let before = gathered.iter_mut().find(|(before, _)| *before == name);
        match before.filter(|_| REPEATABLE.contains(&name.as_ref())) {
            Some((_, values)) => *values = format!("{values}{BETWEEN}{value}").into(),
            None => gathered.push((name, value)),
        }
    }
    gathered
}

/// For a parameter that may be given several times.
pub fn repeated<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeSet<String>, D::Error> {
    let values = String::deserialize(deserializer)?;
    Ok(values.split(BETWEEN).map(str::to_owned).collect())
}

/// For a parameter that is one word, or several with commas.
pub fn words<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<Vec<T>, D::Error> {
    let words = String::deserialize(deserializer)?;
    words.split(',').map(|word| T::deserialize(word.trim().into_deserializer())).collect()
}

/// The number of items of a page.
pub fn page_limit(limit: Option<usize>) -> ApiResult<usize> {
    match limit.unwrap_or(LIMIT_DEFAULT) {
        limit @ 1..=LIMIT_MAX => Ok(limit),
        _ => Err(ApiError::new(Code::InvalidParameter, format!("limit: must be from 1 to {LIMIT_MAX}"))),
    }
}

/// Which page of a list.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PageParams {
    /// Items of a page, 1 to 1000. Default 50.
    pub limit: Option<usize>,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
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
const QUEUES: u8 = b'q';
const CALENDARS: u8 = b'c';
const WORKERS: u8 = b'k';
const LOGS: u8 = b'l';

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

/// The cursor that continues a list of queues after this name.
pub fn queue_cursor(after: &str) -> String {
    encode_cursor(QUEUES, after.as_bytes())
}

/// The name a cursor stands for.
pub fn parse_queue_cursor(cursor: &str) -> ApiResult<String> {
    decode_text_cursor(QUEUES, cursor).ok_or_else(invalid_cursor)
}

/// The cursor that continues a list of workers after this one.
pub fn worker_cursor(after: SessionId) -> String {
    encode_cursor(WORKERS, after.as_uuid().as_bytes())
}

/// The worker a cursor stands for.
pub fn parse_worker_cursor(cursor: &str) -> ApiResult<SessionId> {
    let bytes = decode_cursor::<16>(WORKERS, cursor).ok_or_else(invalid_cursor)?;
    Ok(SessionId::from_uuid(Uuid::from_bytes(bytes)))
}

/// The cursor that continues a list of calendars after this name.
pub fn calendar_cursor(after: &str) -> String {
    encode_cursor(CALENDARS, after.as_bytes())
}

/// The name a cursor stands for.
pub fn parse_calendar_cursor(cursor: &str) -> ApiResult<String> {
    decode_text_cursor(CALENDARS, cursor).ok_or_else(invalid_cursor)
}

/// The cursor that continues a list of attempts after this one.
pub fn attempt_cursor(after: u32) -> String {
    encode_cursor(ATTEMPTS, &after.to_be_bytes())
}

/// The number of the attempt a cursor stands for.
pub fn parse_attempt_cursor(cursor: &str) -> ApiResult<u32> {
    decode_cursor(ATTEMPTS, cursor).map(u32::from_be_bytes).ok_or_else(invalid_cursor)
}

/// The cursor that continues a log here.
pub fn log_cursor(place: LogPlace) -> String {
    let mut bytes = [0; 12];
    bytes[..4].copy_from_slice(&place.attempt.to_be_bytes());
    bytes[4..].copy_from_slice(&place.line.to_be_bytes());
    encode_cursor(LOGS, &bytes)
}

/// The place in a log that a cursor stands for.
pub fn parse_log_cursor(cursor: &str) -> ApiResult<LogPlace> {
    let bytes: [u8; 12] = decode_cursor(LOGS, cursor).ok_or_else(invalid_cursor)?;
    let (attempt, line) = bytes.split_at(4);
    let place = LogPlace {
        attempt: u32::from_be_bytes(attempt.try_into().expect("split after four bytes")),
        line: u64::from_be_bytes(line.try_into().expect("eight bytes are left")),
    };
    // No log has more lines, so no cursor leads there.
    if place.line <= i64::MAX as u64 { Ok(place) } else { Err(invalid_cursor()) }
}

/// What was passed is no cursor of this list.
pub fn invalid_cursor() -> ApiError {
    ApiError::new(Code::InvalidCursor, "pass next_cursor of the same list, unchanged")
}

#[cfg(test)]
mod tests {
    use tickwheel_protocol::{Span, Status};

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Query {
        status: Option<Status>,
        limit: Option<usize>,
        wait: Option<Span>,
        cursor: Option<String>,
    }

    #[test]
    fn parameters_are_typed_and_an_empty_text_is_left_out() {
        let query: Query = read("status=running&wait=30&cursor=").unwrap();
        assert_eq!(
            query,
            Query {
                status: Some(Status::Running),
                limit: None,
                wait: Some(Span::from_millis(30_000)),
                cursor: None
            }
        );
    }

    #[derive(Debug, Deserialize)]
    struct Filters {
        #[serde(default, deserialize_with = "words")]
        status: Vec<Status>,
        #[serde(default, deserialize_with = "repeated")]
        tag: BTreeSet<String>,
    }

    #[test]
    fn some_parameters_take_several_values() {
        let read = |query: &str| read::<Filters>(query);
        let filters = read("tag=a,b&status=failed,cancelled&tag=c%26d").unwrap();
        assert_eq!(filters.status, [Status::Failed, Status::Cancelled]);
        assert_eq!(filters.tag, ["a,b", "c&d"].map(str::to_owned).into());
        let none = read("").unwrap();
        assert!(none.status.is_empty() && none.tag.is_empty());
        assert!(read("status=failed,odd").unwrap_err().detail.contains("`odd`"));
        assert!(read("status=failed,").is_err());
        assert!(read("tag=a%0Ab").is_err(), "nobody passes one value off as two");
        assert!(read("status=failed&status=cancelled").is_err(), "commas are for that");
    }

    #[test]
    fn unknown_repeated_and_senseless_parameters_are_refused() {
        let code = |query: &str| read::<Query>(query).unwrap_err().code;
        assert_eq!(code("stauts=running"), "unknown_parameter");
        let cases = [
            ("status=odd", "status: unknown value `odd`, expected one of `pending`"),
            ("status=", "status: must not be empty; leave it out"),
            ("limit=ten", "limit: must be a whole number"),
            ("limit=-1", "limit: must be a whole number"),
            ("limit=99999999999999999999", "limit: is too large a number"),
            ("wait=soon", "wait: \"soon\" is not allowed, expected a duration: a number of seconds"),
            ("limit=1&limit=2", "limit: must be given only once"),
        ];
        for (query, detail) in cases {
            let problem = read::<Query>(query).unwrap_err();
            assert_eq!(problem.code, "invalid_parameter", "{query}");
            assert!(problem.detail.starts_with(detail), "{query}: {}", problem.detail);
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
        let line = LogPlace { attempt: 3, line: 1 << 40 };
        assert_eq!(parse_log_cursor(&log_cursor(line)).unwrap(), line);
        assert!(parse_log_cursor(&job_cursor(id)).is_err());
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
