//! Paths into data: `extract.result.rows[0].name`.
//!
//! A path begins with a name: that of a task, or one of [`RESERVED`]. What follows leads into the JSON there: a field
//! as `.name` or `["any name"]`, an element as `[n]`, counted from 0, or from the end if it is negative.

use std::fmt;

use serde_json::Value;

/// What the run was given.
pub const INPUT: &str = "input";
/// The run itself: `id`, `workflow`, `version`, `status`.
pub const RUN: &str = "run";
/// The element of the innermost fan-out.
pub const ITEM: &str = "item";
/// Its number.
pub const INDEX: &str = "index";
/// The element of the fan-out around that one.
pub const OUTER: &str = "outer";
/// No task can have one of these names.
pub const RESERVED: [&str; 5] = [INPUT, RUN, ITEM, INDEX, OUTER];

/// One step into a value.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Field(String),
    Element(i64),
}

/// A path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// Where it begins.
    pub root: String,
    steps: Vec<Step>,
}

/// Why a text is no path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a path: {why}")]
pub struct BadPath {
    text: String,
    why: String,
}

/// Whether a character may be part of a name without quotes.
pub(super) fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

impl Path {
    /// Reads one.
    pub fn parse(text: &str) -> Result<Self, BadPath> {
        let bad = |why: &str| BadPath { text: text.to_owned(), why: why.to_owned() };
        let (path, rest) = Self::parse_prefix(text).map_err(|why| bad(&why))?;
        if rest.is_empty() { Ok(path) } else { Err(bad(&format!("nothing is expected at {rest:?}"))) }
    }

    /// Reads one from the beginning of a text, as far as it goes.
    pub(super) fn parse_prefix(text: &str) -> Result<(Self, &str), String> {
        let (root, mut rest) = take_name(text).ok_or("it has to begin with a name")?;
        let mut steps = Vec::new();
        loop {
            if let Some(after) = rest.strip_prefix('.') {
                let (name, after) = take_name(after).ok_or("a name is missing after the dot")?;
                steps.push(Step::Field(name.to_owned()));
                rest = after;
            } else if let Some(after) = rest.strip_prefix('[') {
                let (inside, after) = take_bracket(after)?;
                steps.push(inside);
                rest = after;
            } else {
                return Ok((Self { root: root.to_owned(), steps }, rest));
            }
        }
    }

    /// How many steps it has.
    pub(super) const fn len(&self) -> usize {
        self.steps.len()
    }

    /// The first field after the root.
    pub fn first_field(&self) -> Option<&str> {
        match self.steps.first()? {
            Step::Field(name) => Some(name),
            Step::Element(_) => None,
        }
    }

    /// What the path leads to in the value of its root, or how far it leads.
    pub fn walk<'v>(&self, root: &'v Value) -> Result<&'v Value, String> {
        let mut value = root;
        let mut walked = self.root.clone();
        for step in &self.steps {
            let next = match (step, value) {
                (Step::Field(name), Value::Object(fields)) => fields.get(name),
                (Step::Element(n), Value::Array(elements)) => element(elements, *n),
                _ => None,
            };
            value = next.ok_or_else(|| match step {
                Step::Field(name) => format!("{walked} is {} and has no field {name:?}", kind(value)),
                Step::Element(n) => format!("{walked} is {} and has no element {n}", kind(value)),
            })?;
            walked.push_str(&step.to_string());
        }
        Ok(value)
    }
}

fn element(elements: &[Value], n: i64) -> Option<&Value> {
    let n = if n < 0 { n + i64::try_from(elements.len()).ok()? } else { n };
    elements.get(usize::try_from(n).ok()?)
}

/// What kind of value it is, in words.
pub(super) fn kind(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(_) => "a boolean".into(),
        Value::Number(_) => "a number".into(),
        Value::String(_) => "a string".into(),
        Value::Array(elements) => format!("an array of {}", elements.len()),
        Value::Object(_) => "an object".into(),
    }
}

fn take_name(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c| !is_name_char(c)).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

fn take_bracket(text: &str) -> Result<(Step, &str), String> {
    if text.starts_with('"') {
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<String>();
        let name = values.next().and_then(Result::ok).ok_or("the name in brackets has no end")?;
        let rest = text[values.byte_offset()..].strip_prefix(']').ok_or("a ] is missing")?;
        return Ok((Step::Field(name), rest));
    }
    let (number, rest) = text.split_once(']').ok_or("a ] is missing")?;
    let number = number.trim().parse().map_err(|_| format!("{number:?} is no number"))?;
    Ok((Step::Element(number), rest))
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) if !name.is_empty() && name.chars().all(is_name_char) => write!(f, ".{name}"),
            // Quoted as it is read: in the words of JSON.
            Self::Field(name) => write!(f, "[{}]", Value::from(name.as_str())),
            Self::Element(n) => write!(f, "[{n}]"),
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.root)?;
        self.steps.iter().try_for_each(|step| step.fmt(f))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn walk(path: &str, root: &Value) -> Result<Value, String> {
        Path::parse(path).expect("a path").walk(root).cloned()
    }

    #[test]
    fn a_path_leads_through_fields_and_elements() {
        let root = json!({"result": {"rows": [{"a-b": 1}, {"odd name": 2}], "n": null}});
        assert_eq!(walk("x.result.rows[0].a-b", &root), Ok(json!(1)));
        assert_eq!(walk("x.result.rows[-1][\"odd name\"]", &root), Ok(json!(2)));
        assert_eq!(walk("x.result.n", &root), Ok(Value::Null));
        assert_eq!(walk("x", &root), Ok(root.clone()));
    }

    #[test]
    fn a_path_that_leads_nowhere_says_how_far_it_leads() {
        let root = json!({"result": {"rows": []}});
        assert_eq!(
            walk("x.result.rows[0].a", &root),
            Err("x.result.rows is an array of 0 and has no element 0".into())
        );
        assert_eq!(
            walk("x.result.cols", &root),
            Err("x.result is an object and has no field \"cols\"".into())
        );
    }

    #[test]
    fn what_is_no_path_is_refused_with_the_reason() {
        for (text, why) in [
            ("", "begin with a name"),
            (".x", "begin with a name"),
            ("a.", "after the dot"),
            ("a[1", "] is missing"),
            ("a[x]", "is no number"),
            ("a[\"x]", "has no end"),
            ("a b", "nothing is expected"),
        ] {
            let error = Path::parse(text).expect_err(text).to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn a_path_is_written_as_it_is_read() {
        for text in
            ["a", "a.b[0].c", "a[\"b c\"][-1]", "a[\"\"].b", r#"a["\u0007\n\"\\"]"#, "a[\"\u{200b}\u{e9}'\"]"]
        {
            assert_eq!(Path::parse(text).expect("a path").to_string(), text);
        }
    }
}
