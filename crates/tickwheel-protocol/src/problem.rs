//! Problem details (RFC 9457): what a refusal looks like, and the one table of stable codes.
//!
//! A code never changes its meaning or its status. The message a client sees is made for the client: what the server found
//! inside itself belongs in the log.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The media type of a problem.
pub const CONTENT_TYPE: &str = "application/problem+json";

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $name:ident = $status:literal $code:literal $title:literal;)+) => {
        /// Every way a request can be refused.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code {
            $($(#[doc = $doc])+ $name,)+
        }

        /// Every code there is.
        pub const ALL: &[Code] = &[$(Code::$name),+];

        impl Code {
            /// The stable word for machines.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $code,)+ }
            }

            /// The HTTP status it comes with.
            pub const fn status(self) -> u16 {
                match self { $(Self::$name => $status,)+ }
            }

            /// The short summary for people; the same for every occurrence.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$name => $title,)+ }
            }

            /// When it happens, in a sentence or two.
            pub const fn explanation(self) -> &'static str {
                match self { $(Self::$name => concat!($($doc),+),)+ }
            }
        }
    };
}

codes! {
    /// The body is not one valid JSON document.
    InvalidJson = 400 "invalid_json" "The body is not valid JSON";
    /// The JSON is nested deeper than the server is willing to follow.
    JsonTooDeep = 400 "json_too_deep" "The JSON is nested too deeply";
    /// An object has the same key twice, at any depth.
    DuplicateField = 400 "duplicate_field" "A field appears twice";
    /// The request has a field the server does not know.
    UnknownField = 400 "unknown_field" "Unknown field";
    /// A required field is not there.
    MissingField = 400 "missing_field" "A required field is missing";
    /// A field holds another type than it should.
    WrongType = 400 "wrong_type" "A field has the wrong type";
    /// The id in the path is not a UUID.
    InvalidId = 400 "invalid_id" "The id is not valid";
    /// The cursor was not made by this server for this list.
    InvalidCursor = 400 "invalid_cursor" "The cursor is not valid";
    /// A query parameter is not known to this call.
    UnknownParameter = 400 "unknown_parameter" "Unknown query parameter";
    /// A query parameter or header has a value that makes no sense.
    InvalidParameter = 400 "invalid_parameter" "A parameter is not valid";
    /// The `Idempotency-Key` header and the `idempotency_key` field differ.
    IdempotencyKeyMismatch = 400 "idempotency_key_mismatch" "Two different idempotency keys";
    /// The `Host` header names neither the address the server listens on nor one of `server.allowed_hosts`.
    HostNotAllowed = 403 "host_not_allowed" "The server does not answer for this host";
    /// A browser says that a page of another site sent this request (`Origin`, `Sec-Fetch-Site`).
    CrossSite = 403 "cross_site" "The request comes from another site";
    /// There is no such thing, or it is not yours.
    NotFound = 404 "not_found" "Not found";
    /// The path exists but does not take this method; `Allow` says which.
    MethodNotAllowed = 405 "method_not_allowed" "Method not allowed";
    /// The job or run did not end within the time that `wait` gave it. It goes on.
    WaitTimeout = 408 "wait_timeout" "It has not ended yet";
    /// The request did not arrive in time.
    RequestTimeout = 408 "request_timeout" "The request took too long to arrive";
    /// The idempotency key was seen before with another request.
    IdempotencyConflict = 409 "idempotency_conflict" "The idempotency key belongs to another request";
    /// The state of the job, run or task does not allow what was asked.
    IllegalState = 409 "illegal_state" "The state does not allow this";
    /// There is one of that name already; the detail has its id.
    NameTaken = 409 "name_taken" "The name is taken";
    /// The schedule has a backfill under way, and there is one at a time. Wait for it, or cancel it.
    BackfillRunning = 409 "backfill_running" "A backfill is under way";
    /// As many runs are paused as there may be. Resume or cancel some of them.
    TooManyPaused = 409 "too_many_paused" "Too many runs are paused";
    /// The token names an attempt that is no longer the current one. Nothing was changed.
    StaleToken = 409 "stale_token" "The attempt is no longer current";
    /// The body is larger than the server takes.
    BodyTooLarge = 413 "body_too_large" "The body is too large";
    /// The payload or the result is larger than the server takes.
    PayloadTooLarge = 413 "payload_too_large" "The payload is too large";
    /// The request does not say that it is of the type the call takes (`application/json`, or `text/calendar` for an import), which a POST does
    /// also without a body; or the body is compressed.
    UnsupportedMediaType = 415 "unsupported_media_type" "Unsupported media type";
    /// The request is well-formed but impossible; `errors` names every field that is wrong.
    ValidationFailed = 422 "validation_failed" "The request is not valid";
    /// The job is to depend on one that does not exist, or is not yours; `errors` names the entry. Nothing is stored of it.
    UnknownParent = 422 "unknown_parent" "A job to depend on does not exist";
    /// Tasks of the workflow wait for each other; `errors` names them. Nothing is stored.
    Cycle = 422 "cycle" "Tasks wait for each other";
    /// A task is to depend on one that does not exist; `errors` names the entry. Nothing is stored.
    UnknownTask = 422 "unknown_task" "A task to depend on does not exist";
    /// Two tasks that could wait for each other have the same name; `errors` names the second. Nothing is stored.
    DuplicateTask = 422 "duplicate_task" "Two tasks have the same name";
    /// Something broke inside the server.
    Internal = 500 "internal" "Internal error";
    /// The store is away. Nothing was changed: ask again after `Retry-After`.
    StoreUnavailable = 503 "store_unavailable" "The store is not available";
    /// The store did not say whether it did it. Read before asking again, or repeat with the same idempotency key.
    OutcomeUnknown = 503 "outcome_unknown" "It is not known whether it was done";
    /// More is waiting than the server is willing to hold. Nothing was changed: ask again after `Retry-After`.
    Overloaded = 503 "overloaded" "The server is overloaded";
    /// The server is shutting down. Nothing was changed: ask again after `Retry-After`.
    ShuttingDown = 503 "shutting_down" "The server is shutting down";
    /// The server is starting or cannot reach its store, and should get no traffic.
    NotReady = 503 "not_ready" "The server is not ready";
}

impl Code {
    /// The code behind the word.
    pub fn parse(word: &str) -> Option<Self> {
        ALL.iter().copied().find(|code| code.as_str() == word)
    }
}

/// What is wrong with one field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FieldCode {
    /// The shape is wrong: malformed, unknown, missing, twice, or of another type.
    Malformed,
    /// The value is not one this field takes.
    InvalidValue,
    /// Too long or too large.
    TooLong,
    /// More entries than allowed.
    TooMany,
    /// Below the least or above the greatest value.
    OutOfRange,
    /// It contradicts another field.
    Conflict,
    /// It may not be set by clients.
    Reserved,
    /// Part of the protocol, but this server cannot do it.
    NotSupported,
    /// A URL whose host is an address that this server does not call.
    ForbiddenAddress,
    /// Not a cron expression; the detail names the part at fault and what may stand there.
    InvalidCron,
    /// Not a name of the IANA time-zone database; the detail names those that look like it.
    UnknownTimezone,
    /// Tasks that wait for each other; the detail names them.
    Cycle,
    /// A task to depend on that does not exist; the detail names one that looks like it.
    UnknownTask,
    /// The name of another task.
    DuplicateTask,
}

/// One bad field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FieldError {
    /// JSON pointer (RFC 6901) into the request body; empty for the whole body.
    #[schema(example = "/retry/max_retries")]
    pub pointer: String,
    /// What kind of mistake it is.
    pub code: FieldCode,
    /// What is wrong, in words.
    pub detail: String,
}

/// Why a request was refused (RFC 9457).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// A name for the kind of problem, as a URI.
    #[serde(rename = "type")]
    #[schema(value_type = String, example = "urn:tickwheel:problem:validation_failed")]
    pub kind: Box<str>,
    /// The kind of problem, for people.
    #[schema(value_type = String)]
    pub title: Box<str>,
    /// The HTTP status.
    #[schema(example = 422)]
    pub status: u16,
    /// What happened this time.
    pub detail: String,
    /// The kind of problem, for machines; stable.
    #[schema(example = "validation_failed")]
    pub code: String,
    /// Every bad field.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
}

impl Problem {
    /// A problem of a kind.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self {
            kind: format!("urn:tickwheel:problem:{}", code.as_str()).into(),
            title: code.title().into(),
            status: code.status(),
            detail: detail.into(),
            code: code.as_str().into(),
            errors: Vec::new(),
        }
    }

    /// A problem that lies in one field.
    pub fn at(code: Code, field: FieldError) -> Self {
        Self { errors: vec![field.clone()], ..Self::new(code, field.detail) }
    }

    /// A request whose fields are wrong. Which ones is told in `errors` alone, where the pointers are.
    pub fn invalid(errors: Vec<FieldError>) -> Self {
        let detail = match errors.as_slice() {
            [only] => only.detail.clone(),
            errors => format!("{} fields are wrong", errors.len()),
        };
        Self { errors, ..Self::new(Code::ValidationFailed, detail) }
    }

    /// The same problem inside a larger document, below `prefix`.
    #[must_use]
    pub fn below(mut self, prefix: &str) -> Self {
        for error in &mut self.errors {
            error.pointer.insert_str(0, prefix);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_code_is_unique_snake_case_and_a_failure() {
        let words: HashSet<_> = ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(words.len(), ALL.len());
        for code in ALL {
            assert!(code.as_str().chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{code:?}");
            assert!((400..600).contains(&code.status()), "{code:?}");
            assert_eq!(Code::parse(code.as_str()), Some(*code));
        }
    }

    fn field(pointer: &str) -> FieldError {
        FieldError { pointer: pointer.into(), code: FieldCode::TooLong, detail: "is too long".into() }
    }

    #[test]
    fn the_detail_is_a_plain_sentence_and_stays_true_inside_a_larger_document() {
        let detail = |problem: Problem| problem.below("/jobs/7").detail;
        assert_eq!(detail(Problem::at(Code::PayloadTooLarge, field("/payload"))), "is too long");
        assert_eq!(detail(Problem::invalid(vec![field("/type")])), "is too long");
        assert_eq!(detail(Problem::invalid(vec![field("/type"), field("/queue")])), "2 fields are wrong");
    }

    #[test]
    fn a_problem_carries_its_code_status_and_pointers() {
        let problem = Problem::invalid(vec![field("/type"), field("/queue")]).below("/jobs/7");
        let json = serde_json::to_value(&problem).unwrap();
        assert_eq!(json["status"], 422);
        assert_eq!(json["code"], "validation_failed");
        assert_eq!(json["errors"][1]["pointer"], "/jobs/7/queue");
        assert_eq!(json["errors"][1]["code"], "too_long");
    }
}
