//! Reading request bodies.
//!
//! The input is a body as it is.
//!
//! - Exactly those documents are accepted that `serde_json` accepts, that are not nested too deeply, and in which no
//!   key stands twice.
//! - What is accepted is read to the same value, whole or field by field.
//! - A refusal points to something that is in the document.
//! - The canonical text means the same, whatever the spacing was, and is its own canonical text.
//! - Requests that are accepted read back as they are written.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use serde::de::{DeserializeOwned, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use tickwheel_protocol::validate::Validate;
use tickwheel_protocol::{
    Limits, PatchJob, PutCalendar, SubmitJob, SubmitSchedule, SubmitWorkflow, canonical, strict_json,
};

const DEPTH_MAX: usize = 64;

/// Checks what the module says.
pub fn check(body: &[u8]) {
    let outline: Option<Outline> = serde_json::from_slice(body).ok();
    let is_good =
        outline.as_ref().is_some_and(|outline| outline.depth() <= DEPTH_MAX && !outline.repeats_key());
    match strict_json::check(body, DEPTH_MAX) {
        Ok(()) => {
            assert!(is_good, "accepted, and {outline:?}");
            check_accepted(body);
        }
        Err(problem) => {
            assert!(!is_good, "{problem:?}");
            let code = problem.code.as_str();
            let Some(outline) = outline else { return };
            assert!(matches!(code, "duplicate_field" | "json_too_deep"), "{problem:?}");
            let pointer = &problem.errors[0].pointer;
            assert!(outline.has(pointer), "{pointer:?} leads nowhere");
        }
    }
    check_request::<SubmitJob>(body);
    check_request::<PatchJob>(body);
    check_request::<SubmitSchedule>(body);
    check_request::<SubmitWorkflow>(body);
    check_request::<PutCalendar>(body);
}

fn check_accepted(body: &[u8]) {
    let value: Value = serde_json::from_slice(body).expect("it was accepted");
    let Value::Object(fields) = &value else {
        let problem = strict_json::read::<Value>(body, DEPTH_MAX).expect_err("a request is an object");
        assert_eq!(problem.code, "wrong_type");
        return;
    };
    assert_eq!(strict_json::read::<Value>(body, DEPTH_MAX).as_ref(), Ok(&value));
    let raw: BTreeMap<String, Box<RawValue>> = strict_json::read(body, DEPTH_MAX).expect("it is an object");
    assert_eq!(raw.len(), fields.len());
    for (name, text) in raw {
        let read: Value = serde_json::from_str(text.get()).expect("a part of a document is one");
        assert_eq!(Some(&read), fields.get(&name), "{name:?}");
    }
    check_canonical(body, &value);
}

fn check_canonical(body: &[u8], value: &Value) {
    let text = std::str::from_utf8(body).expect("JSON is text");
    let left_out = value.as_object().and_then(|fields| fields.keys().next_back());
    let left_out = left_out.map_or("", |name| name.as_str());
    let canonical = canonical::object_without(text, left_out).expect("it is an object");
    let mut expected = value.clone();
    expected.as_object_mut().expect("it is an object").remove(left_out);
    let read: Value = serde_json::from_str(&canonical).expect("the canonical text is JSON");
    assert_eq!(read, expected, "{canonical}");
    assert_eq!(canonical::object_without(&canonical, left_out).ok().as_ref(), Some(&canonical));
}

/// A request that is read and written is the same request, and its rules can be checked whatever is in it.
fn check_request<T: DeserializeOwned + Serialize + Validate>(body: &[u8]) {
    let Ok(request) = strict_json::read::<T>(body, DEPTH_MAX) else { return };
    let verdict = request.validate(&Limits::default());
    let written = serde_json::to_vec(&request).expect("a request can be written");
    let again: T = strict_json::read(&written, DEPTH_MAX)
        .unwrap_or_else(|problem| panic!("{problem:?} in {}", String::from_utf8_lossy(&written)));
    assert_eq!(again.validate(&Limits::default()), verdict);
    let written_again = serde_json::to_vec(&again).expect("a request can be written");
    assert_eq!(String::from_utf8_lossy(&written_again), String::from_utf8_lossy(&written));
}

/// A document with every key as often as it stands there.
#[derive(Debug)]
enum Outline {
    Leaf,
    Array(Vec<Self>),
    Object(Vec<(String, Self)>),
}

impl Outline {
    fn depth(&self) -> usize {
        let inside = |deepest: Option<usize>| 1 + deepest.unwrap_or(0);
        match self {
            Self::Leaf => 0,
            Self::Array(elements) => inside(elements.iter().map(Self::depth).max()),
            Self::Object(fields) => inside(fields.iter().map(|(_, value)| value.depth()).max()),
        }
    }

    fn repeats_key(&self) -> bool {
        match self {
            Self::Leaf => false,
            Self::Array(elements) => elements.iter().any(Self::repeats_key),
            Self::Object(fields) => {
                let names: HashSet<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
                names.len() < fields.len() || fields.iter().any(|(_, value)| value.repeats_key())
            }
        }
    }

    /// Whether a JSON pointer leads to something, along any of the keys that stand twice.
    fn has(&self, pointer: &str) -> bool {
        let Some(rest) = pointer.strip_prefix('/') else { return pointer.is_empty() };
        let end = rest.find('/').unwrap_or(rest.len());
        let (step, rest) = (rest[..end].replace("~1", "/").replace("~0", "~"), &rest[end..]);
        match self {
            Self::Leaf => false,
            Self::Array(elements) => {
                step.parse().ok().and_then(|n: usize| elements.get(n)).is_some_and(|value| value.has(rest))
            }
            Self::Object(fields) => fields.iter().any(|(name, value)| *name == step && value.has(rest)),
        }
    }
}

impl<'de> Deserialize<'de> for Outline {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Outliner)
    }
}

struct Outliner;

impl<'de> Visitor<'de> for Outliner {
    type Value = Outline;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }
    fn visit_unit<E>(self) -> Result<Outline, E> {
        Ok(Outline::Leaf)
    }
    fn visit_bool<E>(self, _: bool) -> Result<Outline, E> {
        Ok(Outline::Leaf)
    }
    fn visit_i64<E>(self, _: i64) -> Result<Outline, E> {
        Ok(Outline::Leaf)
    }
    fn visit_u64<E>(self, _: u64) -> Result<Outline, E> {
        Ok(Outline::Leaf)
    }
    fn visit_f64<E>(self, _: f64) -> Result<Outline, E> {
        Ok(Outline::Leaf)
    }
    fn visit_str<E>(self, _: &str) -> Result<Outline, E> {
        Ok(Outline::Leaf)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Outline, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = seq.next_element()? {
            elements.push(element);
        }
        Ok(Outline::Array(elements))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Outline, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry()? {
            fields.push(field);
        }
        Ok(Outline::Object(fields))
    }
}
