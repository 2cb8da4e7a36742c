//! Reading a request body: stricter than JSON parsers, and able to say where the mistake is.
//!
//! First the whole document is walked. Malformed JSON, too deep nesting and duplicate keys (also inside a payload,
//! where nobody else would look) are rejected before anything is built. Then the document is read into its type, and
//! what does not fit is reported with a JSON pointer: a wrong shape is a 400, a value that the right shape cannot hold
//! (`"priority": "urgent"`) a 422.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_path_to_error::{Path, Segment};

use crate::pointer;
use crate::problem::{Code, FieldCode, FieldError, Problem};
use crate::time::MOMENT_RANGE;

/// Reads `body` as a `T`, or says what is wrong with it and where.
pub fn read<'de, T: Deserialize<'de>>(body: &'de [u8], depth_max: usize) -> Result<T, Problem> {
    check(body, depth_max)?;
    read_checked(body)
}

/// Reads a `T` out of (a part of) a document that [`check`] has passed.
pub fn read_checked<'de, T: Deserialize<'de>>(json: &'de [u8]) -> Result<T, Problem> {
    // Every request is an object, but serde would also take the fields in order from an array.
    if json.trim_ascii_start().first() != Some(&b'{') {
        return Err(malformed(Code::WrongType, String::new(), "expected an object".into()));
    }
    // Keeping track of the path costs half of the reading: only what does not fit is read again with it.
    serde_json::from_slice(json).or_else(|_| read_with_path(json))
}

fn read_with_path<'de, T: Deserialize<'de>>(json: &'de [u8]) -> Result<T, Problem> {
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let message = error.inner().to_string();
        misfit(error.path(), strip_position(&message))
    })
}

/// Whether `body` is one JSON document, not nested too deeply, without duplicate keys.
pub fn check(body: &[u8], depth_max: usize) -> Result<(), Problem> {
    let refusal = RefCell::new(None);
    let root = Walk { location: &Location::Root, depth_left: depth_max, refusal: &refusal };
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let walked = root.deserialize(&mut deserializer).and_then(|()| deserializer.end());
    match (refusal.into_inner(), walked) {
        (Some(problem), _) => Err(problem),
        (None, Err(error)) => {
            Err(malformed(Code::InvalidJson, String::new(), format!("not valid JSON: {error}")))
        }
        (None, Ok(())) => Ok(()),
    }
}

fn malformed(code: Code, pointer: String, detail: String) -> Problem {
    Problem::at(code, FieldError { pointer, code: FieldCode::Malformed, detail })
}

/// Where the walk is. Lives on the stack; turned into a pointer only when there is something to report.
enum Location<'a> {
    Root,
    Key(&'a Location<'a>, &'a str),
    Index(&'a Location<'a>, usize),
}

impl Location<'_> {
    fn pointer(&self) -> String {
        match self {
            Self::Root => String::new(),
            Self::Key(parent, key) => {
                let mut pointer = parent.pointer();
                pointer::push_key(&mut pointer, key);
                pointer
            }
            Self::Index(parent, index) => {
                let mut pointer = parent.pointer();
                pointer::push_index(&mut pointer, *index);
                pointer
            }
        }
    }
}

/// Visits every value of a document and keeps none.
#[derive(Clone, Copy)]
struct Walk<'a> {
    location: &'a Location<'a>,
    depth_left: usize,
    refusal: &'a RefCell<Option<Problem>>,
}

impl Walk<'_> {
    fn refuse<E: de::Error>(&self, code: Code, pointer: String, detail: String) -> E {
        *self.refusal.borrow_mut() = Some(malformed(code, pointer, detail));
        E::custom("refused")
    }

    fn one_level_down<E: de::Error>(&self) -> Result<usize, E> {
        self.depth_left.checked_sub(1).ok_or_else(|| {
            self.refuse(Code::JsonTooDeep, self.location.pointer(), "is nested too deeply".into())
        })
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }
    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }
    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }
    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }
    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let depth_left = self.one_level_down()?;
        let mut index = 0;
        while seq
            .next_element_seed(Walk { location: &Location::Index(self.location, index), depth_left, ..self })?
            .is_some()
        {
            index += 1;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let depth_left = self.one_level_down()?;
        let mut seen = Keys::default();
        while let Some(Key(key)) = map.next_key::<Key<'de>>()? {
            let location = Location::Key(self.location, &key);
            if seen.contains(&key) {
                return Err(self.refuse(Code::DuplicateField, location.pointer(), "appears twice".into()));
            }
            map.next_value_seed(Walk { location: &location, depth_left, ..self })?;
            seen.insert(key);
        }
        Ok(())
    }
}

/// The keys of an object. Few are compared one by one, which is quicker than hashing them; many are not, or somebody could
/// make it slow.
#[derive(Default)]
struct Keys<'de> {
    few: Vec<Cow<'de, str>>,
    many: HashSet<Cow<'de, str>>,
}

impl<'de> Keys<'de> {
    const FEW: usize = 16;

    fn contains(&self, key: &str) -> bool {
        self.few.iter().any(|seen| seen == key) || (!self.many.is_empty() && self.many.contains(key))
    }

    fn insert(&mut self, key: Cow<'de, str>) {
        if self.few.len() < Self::FEW {
            self.few.push(key);
        } else {
            self.many.insert(key);
        }
    }
}

/// An object key, borrowed from the input unless it has escapes.
struct Key<'de>(Cow<'de, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object key")
            }
            fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(key)))
            }
            fn visit_str<E>(self, key: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(key.to_owned())))
            }
        }
        deserializer.deserialize_str(KeyVisitor)
    }
}

/// The problem behind a message of the deserialiser. Its wording is serde's and has been stable for a decade; a test
/// holds each of them down.
fn misfit(path: &Path, message: &str) -> Problem {
    let mut pointer = String::new();
    for segment in path.iter() {
        match segment {
            Segment::Seq { index } => pointer::push_index(&mut pointer, *index),
            Segment::Map { key } | Segment::Enum { variant: key } => pointer::push_key(&mut pointer, key),
            Segment::Unknown => {}
        }
    }
    let detail = plain_words(message);
    if let Some(field) = quoted_after(message, "missing field `") {
        pointer::push_key(&mut pointer, field);
        return malformed(Code::MissingField, pointer, "is required".into());
    }
    if message.starts_with("unknown field `") {
        return malformed(Code::UnknownField, pointer, detail);
    }
    if message.starts_with("unknown variant") || message.starts_with("invalid value") {
        let code =
            if message.ends_with(MOMENT_RANGE) { FieldCode::OutOfRange } else { FieldCode::InvalidValue };
        return Problem::invalid(vec![FieldError { pointer, code, detail }]);
    }
    malformed(Code::WrongType, pointer, detail)
}

/// A message of the deserialiser in words for whoever wrote the request: what is there, and what is allowed.
pub fn plain_words(message: &str) -> String {
    if let Some((found, expected)) = found_and_expected(message, "invalid type: ") {
        return format!("expected {}, found {}", plain_type(expected), plain_found(found));
    }
    if let Some((found, expected)) = found_and_expected(message, "invalid value: ") {
        let found = plain_found(found);
        let value = found.strip_prefix("the text ").unwrap_or(&found);
        return format!("{value} is not allowed, expected {}", plain_type(expected));
    }
    match message {
        "expected value" => "expected one of its words, as a text".into(),
        "invalid digit found in string" => "must be a whole number".into(),
        "number too large to fit in target type" => "is too large a number".into(),
        "provided string was not `true` or `false`" => "must be `true` or `false`".into(),
        "data did not match any variant of untagged enum ReportedError" => {
            "expected a text, or an object with `code` and `message`".into()
        }
        other => other.replace("unknown variant", "unknown value"),
    }
}

fn found_and_expected<'a>(message: &'a str, prefix: &str) -> Option<(&'a str, &'a str)> {
    message.strip_prefix(prefix)?.rsplit_once(", expected ")
}

/// What serde calls the value that is there.
fn plain_found(found: &str) -> String {
    match found {
        "null" => "null".into(),
        "map" => "an object".into(),
        "sequence" => "an array".into(),
        "boolean `true`" => "true".into(),
        "boolean `false`" => "false".into(),
        found => match found.split_once(' ') {
            Some(("string", text)) => format!("the text {text}"),
            Some(("integer" | "floating", number)) => {
                format!("the number {}", number.trim_start_matches("point ").trim_matches('`'))
            }
            _ => found.to_owned(),
        },
    }
}

/// What serde calls the type that is asked for.
fn plain_type(expected: &str) -> &str {
    match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number from 0 on",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a string" | "string" => "a text",
        "a sequence" => "an array",
        "a map" | "map" | "string or map" => "an object",
        expected if expected.starts_with("struct ") => "an object",
        expected if expected.starts_with("enum ") || expected == "variant identifier" => {
            "one of its words, as a text"
        }
        expected => expected,
    }
}

fn quoted_after<'a>(message: &'a str, prefix: &str) -> Option<&'a str> {
    message.strip_prefix(prefix)?.split('`').next()
}

/// Without " at line 1 column 9": the pointer says it better, and inside a batch the numbers would be wrong.
fn strip_position(message: &str) -> &str {
    message.rfind(" at line ").map_or(message, |end| &message[..end])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::value::RawValue;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Colour {
        Red,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only what goes in matters here")]
    struct Request {
        name: String,
        count: Option<u8>,
        colour: Option<Colour>,
        parts: Option<BTreeMap<String, Request>>,
        anything: Option<Box<RawValue>>,
    }

    fn refusal(body: &str) -> (String, String) {
        let problem = read::<Request>(body.as_bytes(), 64).expect_err(body);
        (problem.code, problem.errors.into_iter().next().map(|e| e.pointer).unwrap_or_default())
    }

    #[test]
    fn what_is_wrong_is_said_in_words_that_are_not_of_the_language_this_is_written_in() {
        let detail =
            |body: &str| read::<Request>(body.as_bytes(), 64).expect_err(body).errors[0].detail.clone();
        for (body, words) in [
            (r#"{"name":7}"#, "expected a text, found the number 7"),
            (r#"{"name":null}"#, "expected a text, found null"),
            (r#"{"name":"a","count":"7"}"#, "expected a whole number from 0 on, found the text \"7\""),
            (r#"{"name":"a","count":1.5}"#, "expected a whole number from 0 on, found the number 1.5"),
            (r#"{"name":"a","count":-1}"#, "the number -1 is not allowed, expected a whole number from 0 on"),
            (r#"{"name":"a","count":[]}"#, "expected a whole number from 0 on, found an array"),
            (r#"{"name":"a","parts":[]}"#, "expected an object, found an array"),
            (r#"{"name":"a","parts":true}"#, "expected an object, found true"),
            (r#"{"name":"a","parts":{"x":1}}"#, "expected an object, found the number 1"),
            (r#"{"name":"a","colour":"blue"}"#, "unknown value `blue`, expected `red`"),
            (r#"{"name":"a","colour":{}}"#, "expected one of its words, as a text"),
            (r#"{"name":"a","colour":1}"#, "expected one of its words, as a text"),
        ] {
            assert_eq!(detail(body), words, "{body}");
        }
    }

    #[test]
    fn each_mistake_has_its_code_and_its_place() {
        let cases = [
            ("", "invalid_json", ""),
            ("{", "invalid_json", ""),
            ("{\"name\":\"a\"} x", "invalid_json", ""),
            ("{\"name\":\"\u{1}\"}", "invalid_json", ""),
            (r#"{"name":"\ud800"}"#, "invalid_json", ""),
            (r#"{"name":"a","anything":1e999}"#, "invalid_json", ""),
            ("[]", "wrong_type", ""),
            (r#"["a",1,null,null,null]"#, "wrong_type", ""),
            (r#"{"count":1}"#, "missing_field", "/name"),
            (r#"{"name":"a","parts":{"x":{}}}"#, "missing_field", "/parts/x/name"),
            (r#"{"name":"a","parts":{"x/y":{"name":"b","nmae":1}}}"#, "unknown_field", "/parts/x~1y/nmae"),
            (r#"{"name":"a","nmae":1}"#, "unknown_field", "/nmae"),
            (r#"{"name":1}"#, "wrong_type", "/name"),
            (r#"{"name":"a","count":1.5}"#, "wrong_type", "/count"),
            (r#"{"name":"a","count":300}"#, "validation_failed", "/count"),
            (r#"{"name":"a","count":-1}"#, "validation_failed", "/count"),
            (r#"{"name":"a","colour":"blue"}"#, "validation_failed", "/colour"),
            (r#"{"name":"a","name":"b"}"#, "duplicate_field", "/name"),
            (r#"{"name":"a","\u006eame":"b"}"#, "duplicate_field", "/name"),
            (r#"{"name":"a","anything":[0,{"k":1,"k":1}]}"#, "duplicate_field", "/anything/1/k"),
        ];
        for (body, code, pointer) in cases {
            assert_eq!(refusal(body), (code.to_owned(), pointer.to_owned()), "{body}");
        }
    }

    #[test]
    fn a_duplicate_is_found_among_many_keys_wherever_its_twin_is() {
        let keys: Vec<_> = (0..100).map(|n| format!(r#""k{n}":{n}"#)).collect();
        assert!(check(format!("{{{}}}", keys.join(",")).as_bytes(), 64).is_ok());
        for twin in [0, 15, 16, 99] {
            let body = format!(r#"{{{},"k{twin}":0}}"#, keys.join(","));
            assert_eq!(check(body.as_bytes(), 64).unwrap_err().errors[0].pointer, format!("/k{twin}"));
        }
    }

    #[test]
    fn a_moment_that_is_too_far_away_is_out_of_range_and_not_malformed() {
        let code = |moment: &str| {
            let body = format!(r#"{{"at":"{moment}"}}"#);
            let problem = read::<BTreeMap<String, crate::Time>>(body.as_bytes(), 64).expect_err(moment);
            (problem.status, problem.errors[0].code)
        };
        assert_eq!(code("9999-12-31T23:59:59Z"), (422, FieldCode::OutOfRange));
        assert_eq!(code("0001-01-01T00:00:00Z"), (422, FieldCode::OutOfRange));
        assert_eq!(code("tomorrow"), (422, FieldCode::InvalidValue));
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_refused() {
        let problem = read::<Request>(b"{\"name\":\"\xff\"}", 64).unwrap_err();
        assert_eq!(problem.code, "invalid_json");
    }

    #[test]
    fn nesting_is_allowed_up_to_the_limit_and_not_beyond() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(check(nested(64).as_bytes(), 64).is_ok());
        for depth in [65, 10_000] {
            assert_eq!(check(nested(depth).as_bytes(), 64).unwrap_err().code, "json_too_deep");
        }
        let never_closed = "{\"a\":".repeat(100_000);
        assert_eq!(check(never_closed.as_bytes(), 64).unwrap_err().code, "json_too_deep");
    }

    #[test]
    fn a_raw_value_keeps_its_text() {
        let request: Request = read(br#"{"name":"a","anything": {"b": 1.10} }"#, 64).unwrap();
        assert_eq!(request.anything.unwrap().get(), r#"{"b": 1.10}"#);
    }
}
