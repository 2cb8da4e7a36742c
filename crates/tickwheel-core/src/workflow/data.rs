//! Payloads that refer to data of others: `{"$from": "extract.result.rows"}`.
//!
//! Anywhere in a payload an object whose only fields are `$from` and perhaps `default` stands for what the path leads
//! to; without a default, a path that leads nowhere is an error. `{"$literal": …}` stands for what is in it, untouched.

use std::borrow::Cow;
use std::io;

use serde_json::{Map, Value};

use super::path::Path;
use super::references::KEPT_LEN_MIN;
use crate::payload::{self, Payload, Reference};

const FROM: &str = "$from";
const DEFAULT: &str = "default";
const LITERAL: &str = "$literal";

/// Why a reference cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{{\"$from\": \"{path}\"}}: {why}")]
pub struct Unresolved {
    /// Which.
    pub path: String,
    /// Why.
    pub why: String,
}

/// An object with a special meaning.
enum Special<'v> {
    From { path: &'v str, default: Option<&'v Value> },
    Literal(&'v Value),
}

fn special(fields: &Map<String, Value>) -> Result<Option<Special<'_>>, String> {
    if let Some(from) = fields.get(FROM) {
        let default = fields.get(DEFAULT);
        if fields.len() > 1 + usize::from(default.is_some()) {
            return Err("an object with $from may have no other field than default".into());
        }
        let path = from.as_str().ok_or("$from has to be a string")?;
        return Ok(Some(Special::From { path, default }));
    }
    match fields.get(LITERAL) {
        Some(value) if fields.len() == 1 => Ok(Some(Special::Literal(value))),
        Some(_) => Err("an object with $literal may have no other field".into()),
        None => Ok(None),
    }
}

/// The paths that a payload refers to; an error says which is none. `None`: it has nothing special in it at all.
pub(super) fn references(template: &Value) -> Result<Option<Vec<Path>>, String> {
    let (mut paths, mut found) = (Vec::new(), false);
    collect(template, &mut paths, &mut found)?;
    Ok(found.then_some(paths))
}

fn collect(template: &Value, paths: &mut Vec<Path>, found: &mut bool) -> Result<(), String> {
    match template {
        Value::Array(elements) => elements.iter().try_for_each(|element| collect(element, paths, found)),
        Value::Object(fields) => match special(fields)? {
            Some(Special::From { path, .. }) => {
                *found = true;
                paths.push(Path::parse(path).map_err(|error| error.to_string())?);
                Ok(())
            }
            Some(Special::Literal(_)) => {
                *found = true;
                Ok(())
            }
            None => fields.values().try_for_each(|value| collect(value, paths, found)),
        },
        _ => Ok(()),
    }
}

/// Why data cannot be put together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DataFault {
    /// It refers to something that is not there.
    #[error(transparent)]
    Unresolved(#[from] Unresolved),
    /// What is to be done for each element of is no array.
    #[error("{0}")]
    NoArray(String),
    /// It is an array with too many elements.
    #[error("{0}")]
    TooManyItems(String),
    /// It would be too large.
    #[error("{0}")]
    TooLarge(String),
}

/// What a path leads to.
pub(super) type Found<'v> = Result<Cow<'v, Value>, String>;

/// A payload as it was written, read once for all that are made of it: what is the same in all of them is looked up and
/// measured once, and nothing is copied before it is known to be small enough.
#[derive(Debug)]
pub(super) struct Pattern<'v> {
    pieces: Vec<Piece<'v>>,
    /// Bytes of all but what varies,
    fixed_len: usize,
    /// so many of which are kept elsewhere.
    kept_len: usize,
    len_max: usize,
}

#[derive(Debug)]
enum Piece<'v> {
    /// As it is written.
    Text(String),
    /// The same in all.
    Shared(Cow<'v, Value>),
    /// The same in all, and kept elsewhere.
    Reference(Reference),
    /// What another path leads to each time.
    Varying { path: Path, default: Option<&'v Value> },
}

/// Where the values of a [`Pattern`] come from.
pub(super) struct Lookup<'l, 'v> {
    /// Whether a path leads elsewhere each time.
    pub varies: &'l dyn Fn(&Path) -> bool,
    /// What all others lead to.
    pub resolve: &'l dyn Fn(&Path) -> Found<'v>,
    /// Under which number payloads can refer to it, if they can.
    pub kept: &'l dyn Fn(&Path) -> Option<u32>,
}

impl<'v> Pattern<'v> {
    /// Reads a payload of which no more than `len_max` bytes may be made.
    pub fn read(template: &'v Value, lookup: &Lookup<'_, 'v>, len_max: usize) -> Result<Self, DataFault> {
        let mut pattern = Self { pieces: Vec::new(), fixed_len: 0, kept_len: 0, len_max };
        pattern.add(template, lookup)?;
        Ok(pattern)
    }

    fn add(&mut self, template: &'v Value, lookup: &Lookup<'_, 'v>) -> Result<(), DataFault> {
        match template {
            Value::Array(elements) => {
                self.add_text("[")?;
                for (n, element) in elements.iter().enumerate() {
                    self.add_text(if n > 0 { "," } else { "" })?;
                    self.add(element, lookup)?;
                }
                self.add_text("]")
            }
            Value::Object(fields) => match special(fields) {
                Ok(Some(Special::From { path, default })) => self.add_reference(path, default, lookup),
                Ok(Some(Special::Literal(value))) => self.add_text(&value.to_string()),
                Ok(None) => {
                    self.add_text("{")?;
                    for (n, (name, value)) in fields.iter().enumerate() {
                        self.add_text(if n > 0 { "," } else { "" })?;
                        self.add_text(&format!("{}:", Value::from(name.as_str())))?;
                        self.add(value, lookup)?;
                    }
                    self.add_text("}")
                }
                Err(why) => Err(Unresolved { path: String::new(), why }.into()),
            },
            plain => self.add_text(&plain.to_string()),
        }
    }

    fn add_text(&mut self, text: &str) -> Result<(), DataFault> {
        match self.pieces.last_mut() {
            Some(Piece::Text(before)) => before.push_str(text),
            _ => self.pieces.push(Piece::Text(text.to_owned())),
        }
        self.grow(text.len())
    }

    fn add_reference(
        &mut self,
        path: &'v str,
        default: Option<&'v Value>,
        lookup: &Lookup<'_, 'v>,
    ) -> Result<(), DataFault> {
        let unresolved = |why| Unresolved { path: path.to_owned(), why };
        let parsed = Path::parse(path).map_err(|error| unresolved(error.to_string()))?;
        if (lookup.varies)(&parsed) {
            self.pieces.push(Piece::Varying { path: parsed, default });
            return Ok(());
        }
        let found = (lookup.resolve)(&parsed);
        let kept = found.is_ok().then(|| (lookup.kept)(&parsed)).flatten();
        let value = or_default(found, default).map_err(unresolved)?;
        let len = self.measured(&value, self.fixed_len)?;
        self.grow(len)?;
        self.pieces.push(match kept.filter(|_| len >= KEPT_LEN_MIN) {
            Some(task) => {
                self.kept_len += len;
                Piece::Reference(Reference { task, path: path.to_owned() })
            }
            None => Piece::Shared(value),
        });
        Ok(())
    }

    fn grow(&mut self, bytes: usize) -> Result<(), DataFault> {
        self.fixed_len += bytes;
        if self.fixed_len > self.len_max { Err(self.too_large()) } else { Ok(()) }
    }

    /// The bytes of a value behind so many others.
    fn measured(&self, value: &Value, before: usize) -> Result<usize, DataFault> {
        measure(value, self.len_max.saturating_sub(before)).ok_or_else(|| self.too_large())
    }

    fn too_large(&self) -> DataFault {
        DataFault::TooLarge(format!("its payload would be over {} bytes, which are allowed", self.len_max))
    }

    /// The bytes of one payload that are not kept elsewhere. It is not made for that.
    pub fn own_len(&self, resolve: &dyn Fn(&Path) -> Found<'v>) -> Result<usize, DataFault> {
        let mut len = self.fixed_len;
        for piece in &self.pieces {
            if let Piece::Varying { path, default } = piece {
                let value = varying(path, *default, resolve)?;
                len += self.measured(&value, len)?;
            }
        }
        Ok(len - self.kept_len)
    }

    /// One payload.
    pub fn payload(&self, resolve: &dyn Fn(&Path) -> Found<'v>) -> Result<Payload, DataFault> {
        let mut made = Vec::new();
        let mut text = Vec::with_capacity(self.own_len(resolve)?);
        for piece in &self.pieces {
            match piece {
                Piece::Text(piece) => text.extend_from_slice(piece.as_bytes()),
                Piece::Shared(value) => write(value, &mut text),
                Piece::Varying { path, default } => {
                    write(varying(path, *default, resolve)?.as_ref(), &mut text)
                }
                Piece::Reference(reference) => {
                    made.extend(as_text(std::mem::take(&mut text)));
                    made.push(payload::Piece::Reference(reference.clone()));
                }
            }
        }
        made.extend(as_text(text));
        Ok(Payload::of_pieces(made))
    }
}

fn as_text(written: Vec<u8>) -> Option<payload::Piece> {
    let text = String::from_utf8(written).expect("JSON is text");
    (!text.is_empty()).then_some(payload::Piece::Text(text))
}

fn varying<'v>(
    path: &Path,
    default: Option<&'v Value>,
    resolve: &dyn Fn(&Path) -> Found<'v>,
) -> Result<Cow<'v, Value>, Unresolved> {
    or_default(resolve(path), default).map_err(|why| Unresolved { path: path.to_string(), why })
}

fn or_default<'v>(found: Found<'v>, default: Option<&'v Value>) -> Found<'v> {
    match (found, default) {
        (Err(_), Some(default)) => Ok(Cow::Borrowed(default)),
        (found, _) => found,
    }
}

fn write(value: &Value, into: &mut Vec<u8>) {
    serde_json::to_writer(into, value).expect("a value can be written to memory");
}

/// How many bytes a value has as text; `None`: more than `max`.
pub(super) fn measure(value: &Value, max: usize) -> Option<usize> {
    let mut counted = Counted { len: 0, max };
    serde_json::to_writer(&mut counted, value).ok().map(|()| counted.len)
}

/// Counts what is written to it, up to a bound.
struct Counted {
    len: usize,
    max: usize,
}

impl io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.len += bytes.len();
        if self.len > self.max { Err(io::ErrorKind::StorageFull.into()) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn resolved(template: &Value) -> Result<Value, DataFault> {
        made(template, 1_000)
    }

    /// The payload, in which what begins with `item` varies.
    fn made(template: &Value, len_max: usize) -> Result<Value, DataFault> {
        let root = json!({"result": {"rows": [1, 2], "name": "x"}});
        let resolve = |path: &Path| path.walk(&root).map(Cow::Borrowed);
        let lookup = Lookup { varies: &|path| path.root == "item", resolve: &resolve, kept: &|_| Some(1) };
        let pattern = Pattern::read(template, &lookup, len_max)?;
        let text = pattern.payload(&resolve)?.whole().expect("nothing is large");
        assert_eq!(pattern.own_len(&resolve), Ok(text.as_str().len()));
        Ok(serde_json::from_str(text.as_str()).expect("JSON"))
    }

    #[test]
    fn a_payload_is_the_same_whether_it_is_looked_up_once_or_each_time() {
        let template = |root: &str| json!({"a\"b": [{"$from": format!("{root}.result")}, "x", 1.5], "e": {}});
        let expected = json!({"a\"b": [{"rows": [1, 2], "name": "x"}, "x", 1.5], "e": {}});
        assert_eq!(resolved(&template("t")), Ok(expected.clone()));
        assert_eq!(resolved(&template("item")), Ok(expected));
    }

    #[test]
    fn a_number_that_goes_from_task_to_task_stays_the_same() {
        for number in ["-9.223372036853685e22", "2.638344616030823e-256", "0.1", "5e-324"] {
            let root: Value = serde_json::from_str(number).expect("a number");
            let resolve = |_: &Path| Ok(Cow::Borrowed(&root));
            let lookup = Lookup { varies: &|_| false, resolve: &resolve, kept: &|_| None };
            let template = json!({"$from": "t.result"});
            let pattern = Pattern::read(&template, &lookup, 1_000).expect("read");
            let sent = pattern.payload(&resolve).expect("made").as_str().to_owned();
            assert_eq!(serde_json::from_str::<Value>(&sent).expect("a number"), root, "{number}");
            assert_eq!(sent.parse::<f64>(), number.parse(), "{number}");
        }
    }

    #[test]
    fn large_values_are_referred_to_if_they_are_kept_and_the_same_for_all() {
        fn made<'v>(template: &'v Value, root: &'v Value) -> Result<(Payload, usize), DataFault> {
            let resolve = |path: &Path| path.walk(root).map(Cow::Borrowed);
            let kept = |path: &Path| (path.root != "here").then_some(7);
            let lookup = Lookup { varies: &|path| path.root == "item", resolve: &resolve, kept: &kept };
            let pattern = Pattern::read(template, &lookup, 100_000)?;
            Ok((pattern.payload(&resolve)?, pattern.own_len(&resolve)?))
        }
        let root = json!({"large": "x".repeat(2_000), "small": "y"});
        let payload = |template: &Value| made(template, &root);
        let from = |path: &str| json!({"$from": path});
        let (made, own_len) =
            payload(&json!([from("t.large"), from("t.small"), from("t.large")])).expect("made");
        assert_eq!(
            made.as_str(),
            r#"@["[",{"task":7,"path":"t.large"},",\"y\",",{"task":7,"path":"t.large"},"]"]"#
        );
        assert_eq!(own_len, 7);
        for whole in
            [from("item.large"), from("here.large"), json!({"$from": "t.none", "default": "z".repeat(2_000)})]
        {
            assert!(payload(&whole).expect("made").0.whole().is_some(), "{whole}");
        }
        let many = Value::from(vec![from("t.large"); 50]);
        assert!(matches!(payload(&many), Err(DataFault::TooLarge(_))), "it is sent with all of them");
    }

    #[test]
    fn what_would_be_too_large_is_not_made() {
        let many = |root: &str, n| Value::from(vec![json!({"$from": format!("{root}.result.name")}); n]);
        for root in ["t", "item"] {
            assert!(made(&many(root, 4), 17).is_ok(), "[\"x\",\"x\",\"x\",\"x\"]");
            let refused = made(&many(root, 5), 17).expect_err("19 more bytes");
            assert_eq!(refused.to_string(), "its payload would be over 17 bytes, which are allowed");
        }
        assert!(matches!(made(&json!("long text"), 3), Err(DataFault::TooLarge(_))));
    }

    #[test]
    fn references_are_replaced_wherever_they_are() {
        let template =
            json!({"a": [{"$from": "t.result.rows"}], "b": {"c": {"$from": "t.result.rows[1]"}}, "d": 4});
        assert_eq!(resolved(&template), Ok(json!({"a": [[1, 2]], "b": {"c": 2}, "d": 4})));
        assert_eq!(resolved(&json!({"$from": "t.result.name"})), Ok(json!("x")), "the whole of it, too");
    }

    #[test]
    fn a_default_stands_in_and_a_literal_stays() {
        assert_eq!(resolved(&json!({"$from": "t.result.none", "default": []})), Ok(json!([])));
        assert_eq!(resolved(&json!({"x": {"$literal": {"$from": "y"}}})), Ok(json!({"x": {"$from": "y"}})));
    }

    #[test]
    fn what_leads_nowhere_is_named() {
        let error = resolved(&json!([{"$from": "t.result.none"}])).expect_err("nothing there");
        assert_eq!(
            error.to_string(),
            "{\"$from\": \"t.result.none\"}: t.result is an object and has no field \"none\""
        );
    }

    #[test]
    fn a_payload_without_references_says_so_and_a_bad_one_is_refused() {
        assert_eq!(references(&json!({"a": ["$from"]})), Ok(None));
        assert_eq!(
            references(&json!([{"$from": "a.result"}])).map(|found| found.map(|p| p.len())),
            Ok(Some(1))
        );
        for bad in [json!({"$from": 3}), json!({"$from": "a..b"}), json!({"$from": "a", "x": 1})] {
            assert!(references(&bad).is_err(), "{bad}");
        }
    }
}
