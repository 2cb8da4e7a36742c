//! What parameters look like. One that is called the same means the same everywhere, so each is described once.

use std::collections::HashMap;
use std::sync::LazyLock;

use tickwheel_protocol::cron::COUNT_RANGE;
use tickwheel_protocol::document::{LINE, Name};
use tickwheel_protocol::page::{LIMIT_DEFAULT, LIMIT_MAX};
use tickwheel_protocol::schedule::NEXT_COUNT_DEFAULT;
use tickwheel_protocol::time::{SPAN_CHARS_MAX, SPAN_PATTERN};
use utoipa::PartialSchema;
use utoipa::openapi::path::{Operation, Parameter, ParameterIn, ParameterStyle};
use utoipa::openapi::schema::{ArrayBuilder, ArrayItems, ObjectBuilder, Schema, SchemaFormat, Type};
use utoipa::openapi::{OpenApi, RefOr};

use super::{is_health, openapi, operations, parameters};
use crate::params::MAY_BE_EMPTY;

/// Says of each parameter what it may be.
pub fn describe(operation: &mut Operation) {
    for parameter in operation.parameters.iter_mut().flatten() {
        let RefOr::T(parameter) = parameter else { continue };
        match (&mut parameter.schema, schema_of(&parameter.name)) {
            // What may be given several times is described one by one; a list that is there has something in it.
            (Some(RefOr::T(Schema::Array(list))), one) if parameter.name != "include" => {
                list.min_items = Some(1);
                if let Some(one) = one {
                    list.items = ArrayItems::RefOrSchema(Box::new(one));
                }
            }
            (_, Some(schema)) => parameter.schema = Some(schema),
            (_, None) => {}
        }
        if parameter.name == "include" {
            // `include=payload,result` rather than the parameter twice.
            (parameter.style, parameter.explode) = (Some(ParameterStyle::Form), Some(false));
        }
    }
}

fn schema_of(parameter: &str) -> Option<RefOr<Schema>> {
    let mut schema = described(parameter)?;
    if let RefOr::T(Schema::Object(text)) = &mut schema
        && MAY_BE_EMPTY.contains(&parameter)
    {
        (text.min_length, text.max_length) = (None, None);
    }
    Some(schema)
}

fn described(parameter: &str) -> Option<RefOr<Schema>> {
    let schema = match parameter {
        "id" | "job_id" | "workflow_run_id" => {
            text(|text| text.format(Some(SchemaFormat::Custom("uuid".into()))))
        }
        "name" | "schedule" | "schedule_id" | "workflow" | "type" | "queue" | "Idempotency-Key" => {
            Name::schema()
        }
        "task" => text(|text| text.min_length(Some(1)).pattern(Some(LINE))),
        "token" => text(|text| text.min_length(Some(1))),
        "cursor" => text(|text| text.pattern(Some("^[A-Za-z0-9_-]*$"))),
        "wait" => text(|text| text.max_length(Some(SPAN_CHARS_MAX)).pattern(Some(SPAN_PATTERN))),
        "limit" => number(1, LIMIT_MAX as u64, Some(LIMIT_DEFAULT as u64)),
        "count" => {
            let (least, most) = (*COUNT_RANGE.start(), *COUNT_RANGE.end());
            number(least.into(), most.into(), Some(NEXT_COUNT_DEFAULT.into()))
        }
        "n" | "version" => number(1, u32::MAX.into(), None),
        "tag" => {
            ArrayBuilder::new().items(Name::schema()).min_items(Some(1)).unique_items(true).build().into()
        }
        "include" => {
            let word = ObjectBuilder::new().schema_type(Type::String);
            let words = word.enum_values(Some(["payload", "result"])).build();
            ArrayBuilder::new()
                .items(words)
                .min_items(Some(1))
                .max_items(Some(2))
                .unique_items(true)
                .build()
                .into()
        }
        _ => return None,
    };
    Some(schema)
}

fn text(build: impl FnOnce(ObjectBuilder) -> ObjectBuilder) -> RefOr<Schema> {
    RefOr::T(Schema::Object(build(ObjectBuilder::new().schema_type(Type::String)).build()))
}

fn number(least: u64, most: u64, default: Option<u64>) -> RefOr<Schema> {
    let number = ObjectBuilder::new()
        .schema_type(Type::Integer)
        .minimum(Some(least as usize))
        .maximum(Some(most as usize))
        .default(default.map(Into::into));
    RefOr::T(Schema::Object(number.build()))
}

/// The query parameters that a call takes, as the document has them; `None`: it takes any, and heeds none.
pub fn query_parameters(method: &str, path: &str) -> Option<&'static [String]> {
    static KNOWN: LazyLock<HashMap<(&'static str, String), Vec<String>>> = LazyLock::new(|| known(openapi()));
    // HEAD is answered as GET is.
    let method = if method == "HEAD" { "GET" } else { method };
    let by_method = ["GET", "POST", "PUT", "PATCH", "DELETE"].into_iter().find(|known| *known == method)?;
    KNOWN.get(&(by_method, path.to_owned())).map(Vec::as_slice)
}

fn known(mut document: OpenApi) -> HashMap<(&'static str, String), Vec<String>> {
    let is_query = |parameter: &&Parameter| parameter.parameter_in == ParameterIn::Query;
    let mut known = HashMap::new();
    for (path, item) in &mut document.paths.paths {
        for (method, operation) in operations(item).filter(|(_, operation)| !is_health(operation)) {
            let names = parameters(operation).filter(is_query);
            known.insert((method, path.clone()), names.map(|parameter| parameter.name.clone()).collect());
        }
    }
    known
}
