//! Bodies: which may be left out, and those of calls that need none.

use tickwheel_protocol::document::Empty;
use utoipa::openapi::path::Operation;
use utoipa::openapi::request_body::{RequestBody, RequestBodyBuilder};
use utoipa::openapi::{Components, ContentBuilder, Ref, RefOr, Required};
use utoipa::{PartialSchema, ToSchema};

use super::id_of;

/// Calls whose body may be left out: then everything in it has its default.
const MAY_BE_LEFT_OUT: [&str; 7] = [
    "complete_attempt",
    "complete_workflow_task",
    "fail_attempt",
    "pause_schedule",
    "redrive_dead_letter",
    "start_workflow_run",
    "trigger_schedule",
];

/// The parts of the document that bodies refer to.
pub fn add_components(components: &mut Components) {
    components.schemas.insert(Empty::name().into(), Empty::schema());
}

/// Says what the body may be.
pub fn describe(method: &str, operation: &mut Operation) {
    let may_be_left_out = MAY_BE_LEFT_OUT.contains(&id_of(operation));
    match &mut operation.request_body {
        Some(RefOr::T(body)) if may_be_left_out => body.required = Some(Required::False),
        Some(_) => {}
        None if method == "POST" => operation.request_body = Some(RefOr::T(nothing())),
        None => {}
    }
}

/// No body, or an empty object. Either way the request says `Content-Type: application/json`, so that no web page can
/// send it.
fn nothing() -> RequestBody {
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name(Empty::name()))).build();
    let description = "Nothing, or an empty object; with `Content-Type: application/json` either way";
    RequestBodyBuilder::new()
        .description(Some(description))
        .content("application/json", content)
        .required(Some(Required::False))
        .build()
}
