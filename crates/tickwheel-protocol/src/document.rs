//! How the OpenAPI document describes texts: their length and their form.
//!
//! No value of these types ever exists. Each stands for a kind of text in `#[schema(value_type = …)]`. The rules
//! themselves are in [`validate`](crate::validate) and in the domain; the descriptions follow the default
//! [`Limits`](crate::Limits). Formats of our own (`cron`, `time-zone`, `data-path`, `condition`) name what no pattern
//! can express.

use utoipa::openapi::schema::{
    AdditionalProperties, ObjectBuilder, OneOfBuilder, Schema, SchemaFormat, Type,
};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

/// A line or part of one: no control characters.
pub const LINE: &str = r"^[^\u0000-\u001f\u007f-\u009f]*$";
/// Several lines: no control characters except tabs and line ends.
const LINES: &str = r"^[^\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]*$";
/// A day, or the first and the last of a range.
const DAYS: &str = r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])(/[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01]))?$";
const DAYS_OR_CALENDAR: &str = r"^([0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])(/[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01]))?|calendar:[^\u0000-\u001f\u007f-\u009f]+)$";
/// A URL with a known scheme and a host, and without user info.
const URL: &str = r"^[hH][tT][tT][pP][sS]?://[-A-Za-z0-9._~\[!$&'()*+,;=%][-A-Za-z0-9._~:\[\]!$&'()*+,;=%]*([/?#][-A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%]*)?$";
/// A letter, then letters, digits, `_` and `-`.
const TASK: &str = "^[A-Za-z][A-Za-z0-9_-]*$";
/// What can be passed to a process.
const WITHOUT_NUL: &str = r"^[^\u0000]*$";
const ABSOLUTE_PATH: &str = r"^/[^\u0000]*$";
/// What a header may contain.
const PRINTABLE: &str = r"^[\t -~]*$";

macro_rules! texts {
    ($($(#[doc = $doc:literal])+ $name:ident: $build:expr;)+) => {$(
        $(#[doc = $doc])+
        #[derive(Debug)]
        pub enum $name {}

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                let build: fn(ObjectBuilder) -> ObjectBuilder = $build;
                let text = ObjectBuilder::new().schema_type(Type::String);
                let description = concat!($($doc),+).trim();
                RefOr::T(Schema::Object(build(text).description(Some(description)).build()))
            }
        }

        impl ToSchema for $name {}
    )+};
}

texts! {
    /// A name or a key, without control characters.
    Name: |text| text.min_length(Some(1)).max_length(Some(255)).pattern(Some(LINE));
    /// A text of several lines, without control characters other than tabs and line ends.
    Prose: |text| text.max_length(Some(4096)).pattern(Some(LINES));
    /// The name of a workflow, without control characters.
    WorkflowName: |text| text.min_length(Some(1)).max_length(Some(246)).pattern(Some(LINE));
    /// The name of a task: letters, digits, `_` and `-`, beginning with a letter.
    TaskName: |text| text.min_length(Some(1)).max_length(Some(100)).pattern(Some(TASK));
    /// The id of a job.
    JobId: |text| text.format(Some(SchemaFormat::Custom("uuid".into())));
    /// An absolute `http` or `https` URL without user info.
    Url: |text| text.max_length(Some(2048)).pattern(Some(URL));
    /// The value of a header: printable ASCII.
    HeaderValue: |text| text.max_length(Some(4096)).pattern(Some(PRINTABLE));
    /// GET, POST, PUT, PATCH, DELETE or HEAD.
    Method: |text| text.enum_values(Some(crate::validate::METHODS));
    /// A cron expression: five fields, six with leading seconds, a nickname such as `@daily`, or `@every 90s`.
    Cron: |text| text.min_length(Some(1)).max_length(Some(256)).format(Some(SchemaFormat::Custom("cron".into())));
    /// The IANA name of a time zone.
    TimeZone: |text| text.min_length(Some(1)).format(Some(SchemaFormat::Custom("time-zone".into())));
    /// A day, `2026-12-25`, or a range that includes both, `2026-12-24/2026-12-31`.
    Days: |text| text.pattern(Some(DAYS));
    /// A day, `2026-12-25`, a range that includes both, `2026-12-24/2026-12-31`, or `calendar:holidays`.
    ExcludedDays: |text| text.pattern(Some(DAYS_OR_CALENDAR));
    /// A condition over the results of other tasks, such as `extract.result.rows > 0`.
    Condition: |text| text.min_length(Some(1)).max_length(Some(4096)).format(Some(SchemaFormat::Custom("condition".into())));
    /// A word of a command or the value of a variable: any text without NUL.
    Word: |text| text.max_length(Some(100_000)).pattern(Some(WITHOUT_NUL));
    /// The absolute path of a directory.
    Directory: |text| text.max_length(Some(4096)).pattern(Some(ABSOLUTE_PATH));
    /// A pattern for the code or the message of a failure, in which `*` matches anything.
    FailurePattern: |text| text.min_length(Some(1)).max_length(Some(200));
}

/// An exit code other than 0.
#[derive(Debug)]
pub enum ExitCode {}

impl PartialSchema for ExitCode {
    fn schema() -> RefOr<Schema> {
        let code = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)).maximum(Some(255));
        RefOr::T(Schema::Object(code.description(Some("An exit code other than 0")).build()))
    }
}

impl ToSchema for ExitCode {}

/// A path into data: as a string, or as `{"$from": "path"}`, which means the same.
#[derive(Debug)]
pub enum Path {}

impl PartialSchema for Path {
    fn schema() -> RefOr<Schema> {
        let text = || {
            let format = SchemaFormat::Custom("data-path".into());
            ObjectBuilder::new().schema_type(Type::String).min_length(Some(1)).format(Some(format)).build()
        };
        let reference = ObjectBuilder::new()
            .schema_type(Type::Object)
            .property("$from", text())
            .required("$from")
            .additional_properties(Some(AdditionalProperties::FreeForm(false)));
        let description =
            "A path into data: as a string, or as `{\"$from\": \"path\"}`, which means the same";
        let either = OneOfBuilder::new().item(text()).item(reference.build()).description(Some(description));
        RefOr::T(Schema::OneOf(either.build()))
    }
}

impl ToSchema for Path {}

/// An empty object.
#[derive(Debug)]
pub enum Empty {}

impl PartialSchema for Empty {
    fn schema() -> RefOr<Schema> {
        let nothing = ObjectBuilder::new()
            .schema_type(Type::Object)
            .additional_properties(Some(AdditionalProperties::FreeForm(false)));
        RefOr::T(Schema::Object(nothing.build()))
    }
}

impl ToSchema for Empty {}

/// Labels by name: of a worker what it has, of a job what it requires.
#[derive(Debug)]
pub enum Labels {}

impl PartialSchema for Labels {
    fn schema() -> RefOr<Schema> {
        let plain = |kind| ObjectBuilder::new().schema_type(kind).build();
        let value =
            OneOfBuilder::new().item(plain(Type::Boolean)).item(plain(Type::Number)).item(Name::schema());
        let description = "Labels by name. The value is a flag, a number or a text. A job that requires a number needs \
            a worker with at least as much; of a flag or a text it needs exactly that value";
        object_by_name(RefOr::T(Schema::OneOf(value.build())), 64, description)
    }
}

impl ToSchema for Labels {}

/// How many jobs of a type there is room for, by type.
#[derive(Debug)]
pub enum Slots {}

impl PartialSchema for Slots {
    fn schema() -> RefOr<Schema> {
        let count = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0)).maximum(Some(1_000_000));
        let description =
            "How many jobs of a type there is room for, by type. Other types are bound by `max` alone";
        object_by_name(RefOr::T(Schema::Object(count.build())), 1_000, description)
    }
}

impl ToSchema for Slots {}

fn object_by_name(value: RefOr<Schema>, len_max: usize, description: &str) -> RefOr<Schema> {
    let object = ObjectBuilder::new()
        .schema_type(Type::Object)
        .property_names(Some(match Name::schema() {
            RefOr::T(schema) => schema,
            RefOr::Ref(_) => unreachable!("a name is described in place"),
        }))
        .additional_properties(Some(AdditionalProperties::RefOr(value)))
        .max_properties(Some(len_max))
        .description(Some(description));
    RefOr::T(Schema::Object(object.build()))
}

/// An object with exactly one of these fields. Each has its name, the name of its schema, and its meaning.
pub(crate) fn exactly_one(fields: &[(&str, &str, &str)], description: &str) -> RefOr<Schema> {
    let one_of = fields.iter().fold(OneOfBuilder::new(), |one_of, (field, schema, meaning)| {
        let object = ObjectBuilder::new()
            .schema_type(Type::Object)
            .description(Some(*meaning))
            .property(*field, Ref::from_schema_name(*schema))
            .required(*field)
            .additional_properties(Some(AdditionalProperties::FreeForm(false)));
        one_of.item(object.build())
    });
    RefOr::T(Schema::OneOf(one_of.description(Some(description)).build()))
}
