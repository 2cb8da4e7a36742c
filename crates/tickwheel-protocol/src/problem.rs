//! Problem details (RFC 9457): the form of a rejection, and the one table of stable codes.
//!
//! A code never changes its meaning or its status. The message is written for the client; the internal cause belongs in
//! the log.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The media type of a problem.
pub const CONTENT_TYPE: &str = "application/problem+json";

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $name:ident = $status:literal $code:literal $title:literal;)+) => {
        /// Every reason for which a request can be rejected.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code {
            $($(#[doc = $doc])+ $name,)+
        }

        /// All codes.
        pub const ALL: &[Code] = &[$(Code::$name),+];

        impl Code {
            /// The stable code.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $code,)+ }
            }

            /// The HTTP status.
            pub const fn status(self) -> u16 {
                match self { $(Self::$name => $status,)+ }
            }

            /// A short summary for people, the same for every occurrence.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$name => $title,)+ }
            }

            /// When it happens, in one or two sentences.
            pub const fn explanation(self) -> &'static str {
                match self { $(Self::$name => concat!($($doc),+),)+ }
            }
        }
    };
}

codes! {
    /// The body is not one valid JSON document.
    InvalidJson = 400 "invalid_json" "The body is not valid JSON";
    /// The JSON is nested deeper than the server allows.
    JsonTooDeep = 400 "json_too_deep" "The JSON is nested too deeply";
    /// An object contains the same key twice, at any depth.
    DuplicateField = 400 "duplicate_field" "A field appears twice";
    /// The request contains a field that the server does not know.
    UnknownField = 400 "unknown_field" "Unknown field";
    /// A required field is missing.
    MissingField = 400 "missing_field" "A required field is missing";
    /// A field has the wrong type.
    WrongType = 400 "wrong_type" "A field has the wrong type";
    /// The id in the path is not a UUID.
    InvalidId = 400 "invalid_id" "The id is not valid";
    /// The cursor does not come from this list.
    InvalidCursor = 400 "invalid_cursor" "The cursor is not valid";
    /// This call has no query parameter of that name.
    UnknownParameter = 400 "unknown_parameter" "Unknown query parameter";
    /// The value of a query parameter or header is not valid.
    InvalidParameter = 400 "invalid_parameter" "A parameter is not valid";
    /// The `Idempotency-Key` header and the `idempotency_key` field differ.
    IdempotencyKeyMismatch = 400 "idempotency_key_mismatch" "Two different idempotency keys";
    /// The `Host` header is neither the address the server listens on nor in `server.allowed_hosts`.
    HostNotAllowed = 403 "host_not_allowed" "The server does not answer for this host";
    /// A browser reports that a page of another site sent this request (`Origin`, `Sec-Fetch-Site`).
    CrossSite = 403 "cross_site" "The request comes from another site";
    /// It does not exist, or belongs to somebody else.
    NotFound = 404 "not_found" "Not found";
    /// There is no such worker session: it ended, or never was. Register again; what it held is no longer its own.
    UnknownWorker = 404 "unknown_worker" "The worker's session has ended";
    /// The path does not support this method. The `Allow` header lists the methods that it supports.
    MethodNotAllowed = 405 "method_not_allowed" "Method not allowed";
    /// The job or run did not end within the `wait` time. It goes on.
    WaitTimeout = 408 "wait_timeout" "It has not ended yet";
    /// The request did not arrive in time.
    RequestTimeout = 408 "request_timeout" "The request took too long to arrive";
    /// The idempotency key was used before, with a different request.
    IdempotencyConflict = 409 "idempotency_conflict" "The idempotency key belongs to another request";
    /// The state of the job, run or task does not allow this request.
    IllegalState = 409 "illegal_state" "The state does not allow this";
    /// Something else has this name already. The detail contains its id.
    NameTaken = 409 "name_taken" "The name is taken";
    /// The schedule has a backfill that is running, and can have only one at a time. Wait for it, or cancel it.
    BackfillRunning = 409 "backfill_running" "A backfill is under way";
    /// No more runs can be paused. Resume or cancel some of them.
    TooManyPaused = 409 "too_many_paused" "Too many runs are paused";
    /// The token belongs to an attempt that is no longer the current one. Nothing was changed.
    StaleToken = 409 "stale_token" "The attempt is no longer current";
    /// The body is larger than the limit.
    BodyTooLarge = 413 "body_too_large" "The body is too large";
    /// The payload or the result is larger than the limit.
    PayloadTooLarge = 413 "payload_too_large" "The payload is too large";
    /// The `Content-Type` is not what the call expects: `application/json`, or `text/calendar` for an import. A POST
    /// needs it even without a body. Compressed bodies are not supported.
    UnsupportedMediaType = 415 "unsupported_media_type" "Unsupported media type";
    /// The request is well-formed but not valid. `errors` names every bad field.
    ValidationFailed = 422 "validation_failed" "The request is not valid";
    /// The job depends on a job that does not exist or belongs to somebody else. `errors` names the entry. Nothing was
    /// stored.
    UnknownParent = 422 "unknown_parent" "A job to depend on does not exist";
    /// Tasks of the workflow depend on each other in a circle. `errors` names them. Nothing was stored.
    Cycle = 422 "cycle" "Tasks wait for each other";
    /// A task depends on a task that does not exist. `errors` names the entry. Nothing was stored.
    UnknownTask = 422 "unknown_task" "A task to depend on does not exist";
    /// Two tasks in the same scope have the same name. `errors` names the second one. Nothing was stored.
    DuplicateTask = 422 "duplicate_task" "Two tasks have the same name";
    /// The server does not speak this version of the worker protocol. The detail says which it speaks.
    ProtocolUnsupported = 422 "protocol_unsupported" "Unknown version of the worker protocol";
    /// The lease is shorter or longer than the server allows.
    LeaseOutOfRange = 422 "lease_out_of_range" "The lease is too short or too long";
    /// The server has a fault.
    Internal = 500 "internal" "Internal error";
    /// The store is not reachable. Nothing was changed. Try again after `Retry-After`.
    StoreUnavailable = 503 "store_unavailable" "The store is not available";
    /// The store did not confirm the change, so it may have been made or not. Read before you try again, or repeat the
    /// request with the same idempotency key.
    OutcomeUnknown = 503 "outcome_unknown" "It is not known whether it was done";
    /// Too many requests are waiting. Nothing was changed. Try again after `Retry-After`.
    Overloaded = 503 "overloaded" "The server is overloaded";
    /// The server is shutting down. Nothing was changed. Try again after `Retry-After`.
    ShuttingDown = 503 "shutting_down" "The server is shutting down";
    /// The server is starting or cannot reach its store. It should get no traffic.
    NotReady = 503 "not_ready" "The server is not ready";
}

impl Code {
    /// The code with this name.
    pub fn parse(word: &str) -> Option<Self> {
        ALL.iter().copied().find(|code| code.as_str() == word)
    }
}

/// What is wrong with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FieldCode {
    /// The form is wrong: malformed, unknown, missing, duplicate, or of the wrong type.
    Malformed,
    /// The field does not accept this value.
    InvalidValue,
    /// Too long or too large.
    TooLong,
    /// Too many entries.
    TooMany,
    /// Too small or too large.
    OutOfRange,
    /// It contradicts another field.
    Conflict,
    /// Clients may not set this field.
    Reserved,
    /// The protocol has it, but this server does not support it.
    NotSupported,
    /// The host of the URL is an address that this server does not call.
    ForbiddenAddress,
    /// The operator of this server does not allow it.
    NotAllowed,
    /// Not a cron expression. The detail names the bad part and what is allowed there.
    InvalidCron,
    /// Not a name in the IANA time-zone database. The detail suggests similar names.
    UnknownTimezone,
    /// Tasks that depend on each other in a circle. The detail names them.
    Cycle,
    /// A dependency on a task that does not exist. The detail suggests a similar name.
    UnknownTask,
    /// Another task has this name.
    DuplicateTask,
}

/// One bad field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FieldError {
    /// JSON pointer (RFC 6901) into the request body; empty for the whole body.
    #[schema(example = "/retry/max_retries")]
    pub pointer: String,
    /// The kind of mistake.
    pub code: FieldCode,
    /// What is wrong, as a sentence.
    pub detail: String,
}

/// Why a request was rejected (RFC 9457).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// A URI that identifies the kind of problem.
    #[serde(rename = "type")]
    #[schema(value_type = String, example = "urn:tickwheel:problem:validation_failed")]
    pub kind: Box<str>,
    /// A short summary of the kind of problem.
    #[schema(value_type = String)]
    pub title: Box<str>,
    /// The HTTP status.
    #[schema(example = 422)]
    pub status: u16,
    /// What happened in this case.
    pub detail: String,
    /// A stable code for the kind of problem.
    #[schema(example = "validation_failed")]
    pub code: String,
    /// Every bad field.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
}

impl Problem {
    /// A problem of this kind.
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

    /// A problem in one field.
    pub fn at(code: Code, field: FieldError) -> Self {
        Self { errors: vec![field.clone()], ..Self::new(code, field.detail) }
    }

    /// A request with bad fields. Only `errors` names them, because it has the pointers.
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
