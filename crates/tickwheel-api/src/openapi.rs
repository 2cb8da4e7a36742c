//! The OpenAPI document, made from the routes themselves.

use tickwheel_protocol::{Problem, problem};
use utoipa::openapi::{InfoBuilder, LicenseBuilder, OpenApi, Ref, ResponseBuilder};
use utoipa::openapi::{OpenApiBuilder, content::ContentBuilder, path::Operation};
use utoipa::{PartialSchema, ToSchema};

use crate::routes;

/// The document that `/openapi.json` serves.
pub fn openapi() -> OpenApi {
    let mut document = base();
    document.merge(routes::documented().into_openapi());
    let components = document.components.get_or_insert_default();
    components.schemas.insert(Problem::name().into_owned(), Problem::schema());
    let mut parts = Vec::new();
    Problem::schemas(&mut parts);
    components.schemas.extend(parts);
    for item in document.paths.paths.values_mut() {
        let operations =
            [&mut item.get, &mut item.post, &mut item.put, &mut item.patch, &mut item.delete, &mut item.head];
        operations.into_iter().flatten().for_each(add_problem_answer);
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

/// Every call can be refused, always in the same form.
fn add_problem_answer(operation: &mut Operation) {
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name(Problem::name()))).build();
    let refused =
        ResponseBuilder::new().description("Refused").content(problem::CONTENT_TYPE, content).build();
    operation.responses.responses.insert("default".into(), refused.into());
}
