//! How calls are refused: always as a problem, each with the statuses it can have.

use tickwheel_protocol::{Problem, problem};
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::{Operation, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{Components, ContentBuilder, Ref, RefOr, Response, ResponseBuilder};
use utoipa::{PartialSchema, ToSchema};

use super::{id_of, is_health, parameters};

/// A status, the name of its answer in the document, and when it is answered.
const ANSWERS: [(u16, &str, &str); 11] = [
    (400, "BadRequest", "Malformed: the JSON, a field, a parameter or an id is not what it should be"),
    (403, "Forbidden", "The `Host` is not this server's, or a web page of another site sent the request"),
    (404, "NotFound", "It does not exist"),
    (408, "Timeout", "The job or run did not end within `wait`, or the body did not arrive in time"),
    (409, "Conflict", "The state does not allow this, or the name or key is taken"),
    (413, "TooLarge", "The body or the payload is too large"),
    (415, "UnsupportedMediaType", "The `Content-Type` is not what the call expects"),
    (422, "Invalid", "Well-formed but impossible; `errors` has every bad field"),
    (500, "Internal", "The server has a fault"),
    (503, "Unavailable", "The store is not reachable, or the server is overloaded or shutting down"),
    (405, "MethodNotAllowed", "The path does not support this method"),
];

/// Calls that a state, a name or a key can stand in the way of.
const CONFLICTS: [&str; 27] = [
    "backfill_schedule",
    "cancel_backfill",
    "cancel_job",
    "cancel_workflow_run",
    "complete_attempt",
    "complete_workflow_task",
    "create_schedule",
    "delete_job",
    "fail_attempt",
    "heartbeat_attempt",
    "patch_job",
    "patch_schedule",
    "pause_job",
    "pause_workflow_run",
    "redrive_dead_letter",
    "resend_job_callback",
    "resume_job",
    "resume_workflow_run",
    "retry_job",
    "retry_workflow_run",
    "retry_workflow_task",
    "run_job",
    "skip_workflow_task",
    "start_workflow_run",
    "submit_job",
    "submit_workflow",
    "trigger_schedule",
];
/// Calls without a body that can be impossible.
const IMPOSSIBLE: [&str; 2] = ["retry_workflow_run", "retry_workflow_task"];

/// The parts of the document that refusals refer to.
pub fn add_components(components: &mut Components) {
    components.schemas.insert(Problem::name().into_owned(), Problem::schema());
    let mut parts = Vec::new();
    Problem::schemas(&mut parts);
    components.schemas.extend(parts);
    for (status, name, when) in ANSWERS {
        components.responses.insert(name.into(), RefOr::T(answer(status, when)));
    }
}

fn answer(status: u16, when: &str) -> Response {
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name(Problem::name()))).build();
    let answer = ResponseBuilder::new().description(when).content(problem::CONTENT_TYPE, content);
    if status != 503 {
        return answer.build();
    }
    let seconds = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0)).build();
    let header =
        HeaderBuilder::new().schema(Some(seconds)).description(Some("Seconds to wait before the next try"));
    answer.header("Retry-After", header.build()).build()
}

/// Adds how the call can be refused.
pub fn describe(method: &str, operation: &mut Operation) {
    let statuses = statuses(method, operation);
    for (status, name, _) in ANSWERS.iter().filter(|(status, ..)| statuses.contains(status)) {
        let answer = Ref::from_response_name(*name);
        operation.responses.responses.insert(status.to_string(), RefOr::Ref(answer));
    }
}

fn statuses(method: &str, operation: &Operation) -> Vec<u16> {
    let id = id_of(operation);
    if is_health(operation) {
        return if id == "healthz" { vec![500] } else { vec![403, 500, 503] };
    }
    let mut statuses = vec![400, 403, 500, 503];
    if parameters(operation).any(|parameter| parameter.parameter_in == ParameterIn::Path) {
        statuses.push(404);
    }
    if parameters(operation).any(|parameter| parameter.name == "wait") {
        statuses.push(408);
    }
    if method != "GET" {
        statuses.extend([408, 413, 415]);
    }
    if operation.request_body.is_some() || IMPOSSIBLE.contains(&id) {
        statuses.push(422);
    }
    if CONFLICTS.contains(&id) {
        statuses.push(409);
    }
    statuses
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::super::{openapi, operations};
    use super::*;

    #[test]
    fn every_call_that_is_named_here_exists() {
        let mut document = openapi();
        let items = document.paths.paths.values_mut();
        let ids: HashSet<String> = items
            .flat_map(|item| operations(item).map(|(_, operation)| id_of(operation).to_owned()))
            .collect();
        for id in CONFLICTS.iter().chain(&IMPOSSIBLE) {
            assert!(ids.contains(*id), "{id}");
        }
    }
}
