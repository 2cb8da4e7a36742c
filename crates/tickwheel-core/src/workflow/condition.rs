//! Conditions: `check.result.rows > 0 and not input.dry_run`.
//!
//! ```text
//! any   = all { "or" all }
//! all   = not { "and" not }
//! not   = "not" not | term [ op term ]        op: == != < <= > >= in
//! term  = "(" any ")" | path | JSON literal
//! ```
//! A path that leads nowhere is null. A value by itself holds unless it is null, false, 0 or empty. Only numbers are
//! less than numbers, and strings than strings; everything else is neither less nor more.

use std::cmp::Ordering;

use serde_json::Value;

use super::number;
use super::path::{Path, is_name_char};

/// The deepest nesting that is read.
const DEPTH_MAX: usize = 32;

/// A condition.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition(Expr);

#[derive(Clone, Debug, PartialEq)]
enum Expr {
    Any(Vec<Expr>),
    All(Vec<Expr>),
    Not(Box<Expr>),
    Compare(Box<Expr>, Op, Box<Expr>),
    Path(Path),
    Literal(Value),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    Equal,
    Unequal,
    Less,
    AtMost,
    More,
    AtLeast,
    In,
}

/// The longer ones first, so that they are not taken for the shorter.
const OPS: [(&str, Op); 7] = [
    ("==", Op::Equal),
    ("!=", Op::Unequal),
    ("<=", Op::AtMost),
    (">=", Op::AtLeast),
    ("<", Op::Less),
    (">", Op::More),
    ("in", Op::In),
];

/// Why a text is no condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a condition: {why}")]
pub struct BadCondition {
    text: String,
    why: String,
}

impl Condition {
    /// Reads one.
    pub fn parse(text: &str) -> Result<Self, BadCondition> {
        let bad = |why: String| BadCondition { text: text.to_owned(), why };
        let mut reader = Reader { rest: text };
        let expr = reader.any(0).map_err(bad)?;
        reader.skip_space();
        if reader.rest.is_empty() {
            return Ok(Self(expr));
        }
        Err(bad(format!("nothing is expected at {:?}", reader.rest)))
    }

    /// The paths in it.
    pub fn paths(&self) -> Vec<&Path> {
        let mut paths = Vec::new();
        self.0.collect_paths(&mut paths);
        paths
    }

    /// Whether it holds, for what the paths lead to.
    pub fn holds(&self, resolve: &dyn Fn(&Path) -> Option<Value>) -> bool {
        truth(&self.0.value(resolve))
    }
}

impl Expr {
    fn collect_paths<'e>(&'e self, paths: &mut Vec<&'e Path>) {
        match self {
            Self::Any(parts) | Self::All(parts) => parts.iter().for_each(|part| part.collect_paths(paths)),
            Self::Not(part) => part.collect_paths(paths),
            Self::Compare(left, _, right) => {
                left.collect_paths(paths);
                right.collect_paths(paths);
            }
            Self::Path(path) => paths.push(path),
            Self::Literal(_) => {}
        }
    }

    fn value(&self, resolve: &dyn Fn(&Path) -> Option<Value>) -> Value {
        match self {
            Self::Any(parts) => parts.iter().any(|part| truth(&part.value(resolve))).into(),
            Self::All(parts) => parts.iter().all(|part| truth(&part.value(resolve))).into(),
            Self::Not(part) => (!truth(&part.value(resolve))).into(),
            Self::Compare(left, op, right) => {
                compare(&left.value(resolve), *op, &right.value(resolve)).into()
            }
            Self::Path(path) => resolve(path).unwrap_or(Value::Null),
            Self::Literal(value) => value.clone(),
        }
    }
}

fn truth(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(truth) => *truth,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(elements) => !elements.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    }
}

fn compare(left: &Value, op: Op, right: &Value) -> bool {
    let order = order(left, right);
    match op {
        Op::Equal => equal(left, right),
        Op::Unequal => !equal(left, right),
        Op::Less => order == Some(Ordering::Less),
        Op::AtMost => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        Op::More => order == Some(Ordering::Greater),
        Op::AtLeast => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        Op::In => match right {
            Value::Array(elements) => elements.iter().any(|element| equal(left, element)),
            Value::Object(fields) => left.as_str().is_some_and(|name| fields.contains_key(name)),
            Value::String(text) => left.as_str().is_some_and(|part| text.contains(part)),
            _ => false,
        },
    }
}

/// 1 and 1.0 are the same, also inside of arrays and objects.
fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => number::compare(left, right) == Ordering::Equal,
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| equal(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            let is_in_right =
                |(name, value): (&String, &Value)| right.get(name).is_some_and(|other| equal(value, other));
            left.len() == right.len() && left.iter().all(is_in_right)
        }
        _ => left == right,
    }
}

fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => Some(number::compare(left, right)),
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        _ => None,
    }
}

struct Reader<'t> {
    rest: &'t str,
}

impl Reader<'_> {
    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    /// Takes a word or sign if it is next; a word has to end there.
    fn take(&mut self, word: &str) -> bool {
        self.skip_space();
        let Some(rest) = self.rest.strip_prefix(word) else { return false };
        let is_word = word.chars().all(is_name_char);
        if is_word && rest.starts_with(|c| is_name_char(c) || c == '.') {
            return false;
        }
        self.rest = rest;
        true
    }

    fn any(&mut self, depth: usize) -> Result<Expr, String> {
        self.chain(depth, "or", Expr::Any, |reader, depth| reader.chain(depth, "and", Expr::All, Self::not))
    }

    fn chain(
        &mut self,
        depth: usize,
        word: &str,
        join: fn(Vec<Expr>) -> Expr,
        part: impl Fn(&mut Self, usize) -> Result<Expr, String>,
    ) -> Result<Expr, String> {
        let first = part(self, depth)?;
        let mut parts = vec![first];
        while self.take(word) {
            parts.push(part(self, depth)?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { join(parts) })
    }

    fn not(&mut self, depth: usize) -> Result<Expr, String> {
        if depth > DEPTH_MAX {
            return Err("it is nested too deeply".into());
        }
        if self.take("not") {
            return Ok(Expr::Not(Box::new(self.not(depth + 1)?)));
        }
        let left = self.term(depth)?;
        let Some((_, op)) = OPS.into_iter().find(|(sign, _)| self.take(sign)) else { return Ok(left) };
        Ok(Expr::Compare(Box::new(left), op, Box::new(self.term(depth)?)))
    }

    fn term(&mut self, depth: usize) -> Result<Expr, String> {
        if self.take("(") {
            let inner = self.any(depth + 1)?;
            return if self.take(")") { Ok(inner) } else { Err("a ) is missing".into()) };
        }
        self.skip_space();
        if self.rest.is_empty() {
            return Err("it ends where a value is expected".into());
        }
        for (word, value) in
            [("true", Value::Bool(true)), ("false", Value::Bool(false)), ("null", Value::Null)]
        {
            if self.take(word) {
                return Ok(Expr::Literal(value));
            }
        }
        if self.rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            let (path, rest) = Path::parse_prefix(self.rest)?;
            self.rest = rest;
            return Ok(Expr::Path(path));
        }
        let mut values = serde_json::Deserializer::from_str(self.rest).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) => {
                self.rest = &self.rest[values.byte_offset()..];
                Ok(Expr::Literal(value))
            }
            _ => Err(format!("a value is expected at {:?}", self.rest)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn holds(text: &str) -> bool {
        let data = json!({"rows": 3, "name": "ann", "none": null, "list": [1, "x"], "flag": true, "zero": 0});
        let condition = Condition::parse(text).expect(text);
        condition.holds(&|path| path.walk(&json!({"result": data.clone()})).ok().cloned())
    }

    #[test]
    fn comparisons_and_words_mean_what_they_say() {
        for text in [
            "a.result.rows > 2",
            "a.result.rows == 3.0",
            "a.result.rows >= 3 and a.result.rows <= 3",
            "a.result.name == \"ann\" or false",
            "not a.result.none",
            "not (a.result.flag and a.result.zero)",
            "\"x\" in a.result.list",
            "a.result.name in [\"bob\", \"ann\"]",
            "a.result.missing == null",
            "a.result.name != 3",
            "\"nn\" in a.result.name",
            "a.result.flag",
            "[1, {\"a\": 2.0}] == [1.0, {\"a\": 2}]",
            "18446744073709551615 != 18446744073709551614",
        ] {
            assert!(holds(text), "{text}");
        }
        for text in [
            "a.result.rows < 3",
            "a.result.zero",
            "a.result.name > 3",
            "not a.result.flag",
            "a.result.missing.further",
            "7 in a.result.list",
        ] {
            assert!(!holds(text), "{text}");
        }
    }

    #[test]
    fn and_binds_closer_than_or() {
        assert!(holds("true or true and false"));
        assert!(!holds("(true or true) and false"));
    }

    #[test]
    fn a_name_that_begins_like_a_word_is_a_name() {
        let condition = Condition::parse("notify.result and order.result and input.x").expect("a condition");
        let roots: Vec<&str> = condition.paths().iter().map(|path| path.root.as_str()).collect();
        assert_eq!(roots, ["notify", "order", "input"]);
    }

    #[test]
    fn what_is_no_condition_is_refused_with_the_reason() {
        for (text, why) in [
            ("", "ends where a value"),
            ("a.result >", "ends where a value"),
            ("(a.result", ") is missing"),
            ("a.result = 3", "nothing is expected at \"= 3\""),
            ("a.result == 'x'", "a value is expected"),
            (&"not ".repeat(40), "too deeply"),
        ] {
            let error = Condition::parse(text).expect_err(text).to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
