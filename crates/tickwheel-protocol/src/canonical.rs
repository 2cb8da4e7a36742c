//! One text for all the ways to write the same JSON document.
//!
//! Spacing, the order of fields and escapes in strings do not matter; numbers are compared as they were written. Used to
//! tell a repeated request from a different one under the same idempotency key.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

/// A key borrowed from the input where it has no escapes.
#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

/// The canonical text of an object without its field `left_out`.
pub fn object_without(json: &str, left_out: &str) -> serde_json::Result<String> {
    let mut fields: BTreeMap<Key<'_>, &RawValue> = serde_json::from_str(json)?;
    fields.remove(&Key(left_out.into()));
    let mut out = String::with_capacity(json.len());
    write_object(fields, &mut out)?;
    Ok(out)
}

fn write_value(json: &str, out: &mut String) -> serde_json::Result<()> {
    match json.as_bytes().first() {
        Some(b'{') => write_object(serde_json::from_str(json)?, out),
        Some(b'[') => write_array(&serde_json::from_str::<Vec<&RawValue>>(json)?, out),
        Some(b'"') => write_string(&serde_json::from_str::<Cow<'_, str>>(json)?, out),
        _ => {
            out.push_str(json);
            Ok(())
        }
    }
}

fn write_object(fields: BTreeMap<Key<'_>, &RawValue>, out: &mut String) -> serde_json::Result<()> {
    out.push('{');
    for (index, (key, value)) in fields.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_string(&key.0, out)?;
        out.push(':');
        write_value(value.get(), out)?;
    }
    out.push('}');
    Ok(())
}

fn write_array(items: &[&RawValue], out: &mut String) -> serde_json::Result<()> {
    out.push('[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_value(item.get(), out)?;
    }
    out.push(']');
    Ok(())
}

fn write_string(text: &str, out: &mut String) -> serde_json::Result<()> {
    out.push_str(&serde_json::to_string(text)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(json: &str) -> String {
        object_without(json, "idempotency_key").unwrap()
    }

    #[test]
    fn spacing_order_escapes_and_the_key_make_no_difference() {
        let plain = canonical(r#"{"type":"a","payload":{"x":[1,2.50],"y":"é"}}"#);
        let dressed = canonical(
            r#" { "payload" : {"y":"\u00e9", "x" : [ 1 , 2.50 ]}, "idempotency_key": "k", "\u0074ype" : "a" } "#,
        );
        assert_eq!(plain, dressed);
        assert_eq!(plain, r#"{"payload":{"x":[1,2.50],"y":"é"},"type":"a"}"#);
    }

    #[test]
    fn another_value_is_another_text_even_beyond_the_precision_of_floats() {
        let big = |last: char| canonical(&format!(r#"{{"n":1234567890123456789012345{last}}}"#));
        assert_ne!(big('1'), big('2'));
        assert_ne!(canonical(r#"{"a":[1,2]}"#), canonical(r#"{"a":[2,1]}"#));
    }
}
