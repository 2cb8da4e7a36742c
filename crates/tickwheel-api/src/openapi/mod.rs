//! The OpenAPI document, made from the routes themselves.
//!
//! The routes and types say what each call takes and answers. What is the same for many of them is added here: what
//! parameters look like, which bodies may be left out, how calls are refused, and how one answer leads to the next
//! call.

mod bodies;
mod links;
mod parameters;
mod problems;

use utoipa::openapi::path::{Operation, Parameter, PathItem};
use utoipa::openapi::{InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder, RefOr};

pub use parameters::query_parameters;

use crate::routes;

/// The document that `/openapi.json` serves.
pub fn openapi() -> OpenApi {
    let mut document = base();
    document.merge(routes::documented().into_openapi());
    let components = document.components.get_or_insert_default();
    problems::add_components(components);
    bodies::add_components(components);
    for item in document.paths.paths.values_mut() {
        for (method, operation) in operations(item) {
            parameters::describe(operation);
            bodies::describe(method, operation);
            problems::describe(method, operation);
            links::add(operation);
        }
    }
    document
}

fn base() -> OpenApi {
    let info = InfoBuilder::new()
        .title("Tickwheel")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(
            "A distributed job scheduler. Refusals are problem details (RFC 9457) with stable codes.",
        ))
        .license(Some(LicenseBuilder::new().name("Apache-2.0").identifier(Some("Apache-2.0")).build()));
    OpenApiBuilder::new().info(info.build()).build()
}

/// The calls of a path, each with its method.
fn operations(item: &mut PathItem) -> impl Iterator<Item = (&'static str, &mut Operation)> {
    let all = [
        ("GET", &mut item.get),
        ("POST", &mut item.post),
        ("PUT", &mut item.put),
        ("PATCH", &mut item.patch),
        ("DELETE", &mut item.delete),
    ];
    all.into_iter().filter_map(|(method, operation)| Some((method, operation.as_mut()?)))
}

/// The parameters of a call. None of ours is a reference.
fn parameters(operation: &Operation) -> impl Iterator<Item = &Parameter> {
    operation.parameters.iter().flatten().filter_map(|parameter| match parameter {
        RefOr::T(parameter) => Some(parameter),
        RefOr::Ref(_) => None,
    })
}

/// What a call is called.
fn id_of(operation: &Operation) -> &str {
    operation.operation_id.as_deref().unwrap_or_default()
}

/// Calls for load balancers, monitors and tools: whoever asks is answered, whatever else they say.
fn is_health(operation: &Operation) -> bool {
    operation.tags.iter().flatten().any(|tag| tag == "health")
}
