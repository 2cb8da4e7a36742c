//! Payloads that refer to data of others: `{"$from": "extract.result.rows"}`.
//!
//! Anywhere in a payload an object whose only fields are `$from` and perhaps `default` stands for what the path leads to; without a default, a path
//! that leads nowhere is an error. `{"$literal": …}` stands for what is in it, untouched.

use serde_json::{Map, Value};

use super::path::Path;

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

/// The payload with every reference replaced by what `look` finds for its path.
pub fn resolve(template: &Value, look: &dyn Fn(&Path) -> Result<Value, String>) -> Result<Value, Unresolved> {
    let resolve_all = |value: &Value| resolve(value, look);
    match template {
        Value::Array(elements) => elements.iter().map(resolve_all).collect(),
        Value::Object(fields) => match special(fields) {
            Ok(Some(Special::From { path, default })) => follow(path, default, look),
            Ok(Some(Special::Literal(value))) => Ok(value.clone()),
            Ok(None) => {
                let field = |(name, value): (&String, &Value)| Ok((name.clone(), resolve(value, look)?));
                fields.iter().map(field).collect::<Result<Map<_, _>, _>>().map(Value::Object)
            }
            Err(why) => Err(Unresolved { path: String::new(), why }),
        },
        plain => Ok(plain.clone()),
    }
}

fn follow(
    path: &str,
    default: Option<&Value>,
    look: &dyn Fn(&Path) -> Result<Value, String>,
) -> Result<Value, Unresolved> {
    let found = Path::parse(path).map_err(|error| error.to_string()).and_then(|path| look(&path));
    match (found, default) {
        (Ok(value), _) => Ok(value),
        (Err(_), Some(default)) => Ok(default.clone()),
        (Err(why), None) => Err(Unresolved { path: path.to_owned(), why }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn resolved(template: &Value) -> Result<Value, Unresolved> {
        let root = json!({"result": {"rows": [1, 2], "name": "x"}});
        resolve(template, &|path| path.walk(&root).cloned())
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
