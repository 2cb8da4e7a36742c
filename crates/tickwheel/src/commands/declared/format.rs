//! Converts YAML, TOML and JSON into JSON, which the server accepts.
//!
//! Stricter than the formats: a duplicate key is rejected, and only `true` and `false` are booleans (`on` and `no` are
//! texts). Dates and times of TOML become the texts as written.

use std::path::Path;

use serde_json::{Map, Number, Value};
use tickwheel_protocol::strict_json;

use crate::failure::{CommandError, bad_field};

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// YAML.
    Yaml,
    /// TOML.
    Toml,
    /// JSON.
    Json,
}

/// The deepest nesting of JSON that is read; YAML and TOML have bounds of their own.
const JSON_DEPTH_MAX: usize = 128;

impl Format {
    /// The format by the extension of the file name. Standard input is YAML.
    pub fn of(path: &Path) -> Result<Self, CommandError> {
        if path == Path::new("-") {
            return Ok(Self::Yaml);
        }
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("yaml" | "yml") => Ok(Self::Yaml),
            Some("toml") => Ok(Self::Toml),
            Some("json") => Ok(Self::Json),
            _ => {
                let detail = "its name has to end in .yaml, .yml, .toml or .json";
                Err(CommandError::BadInput(format!("{}: {detail}", path.display())))
            }
        }
    }

    /// The document, or what is wrong with it and in which line.
    pub fn parse(self, text: &str) -> Result<Value, String> {
        match self {
            Self::Yaml => yaml(text),
            Self::Toml => toml(text),
            Self::Json => json(text),
        }
    }
}

fn yaml(text: &str) -> Result<Value, String> {
    let options = serde_saphyr::options! {
        strict_booleans: true,
        with_snippet: false,
        reject_unsupported_tags: true,
    };
    // The other messages speak to whoever wrote this program.
    let for_users = serde_saphyr::UserMessageFormatter;
    serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| error.render_with_formatter(&for_users))
}

fn toml(text: &str) -> Result<Value, String> {
    let table: toml::Table = toml::from_str(text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        format!("line {}: {}", before.matches('\n').count() + 1, error.message())
    })?;
    json_of(toml::Value::Table(table))
}

fn json_of(value: toml::Value) -> Result<Value, String> {
    Ok(match value {
        toml::Value::String(text) => Value::String(text),
        toml::Value::Integer(number) => Value::Number(number.into()),
        toml::Value::Float(number) => {
            let written = Number::from_f64(number).map(Value::Number);
            written.ok_or_else(|| format!("{number} is a number that JSON does not have"))?
        }
        toml::Value::Boolean(truth) => Value::Bool(truth),
        toml::Value::Datetime(time) => Value::String(time.to_string()),
        toml::Value::Array(items) => Value::Array(items.into_iter().map(json_of).collect::<Result<_, _>>()?),
        toml::Value::Table(members) => {
            let members = members.into_iter().map(|(name, value)| Ok((name, json_of(value)?)));
            Value::Object(members.collect::<Result<Map<_, _>, String>>()?)
        }
    })
}

fn json(text: &str) -> Result<Value, String> {
    strict_json::read(text.as_bytes(), JSON_DEPTH_MAX).map_err(|problem| match problem.errors.as_slice() {
        [only] if !only.pointer.is_empty() => bad_field(only),
        _ => problem.detail,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_that_look_like_booleans_or_dates_stay_texts() {
        let document = Format::Yaml.parse("a: on\nb: no\nc: 2026-12-25\nd: true\ne: '7'\nf: 5m\ng: ~\n");
        let expected =
            json!({"a": "on", "b": "no", "c": "2026-12-25", "d": true, "e": "7", "f": "5m", "g": null});
        assert_eq!(document, Ok(expected));
    }

    #[test]
    fn a_key_that_stands_twice_is_refused_in_every_format() {
        for (format, text) in [(Format::Yaml, "a: 1\nb: 2\na: 3\n"), (Format::Toml, "a = 1\nb = 2\na = 3\n")]
        {
            let problem = format.parse(text).unwrap_err();
            assert!(problem.contains("line 3"), "{problem}");
        }
        let problem = Format::Json.parse("{\"a\": 1,\n\"a\": 3}").unwrap_err();
        assert!(problem.contains('a'), "{problem}");
    }

    #[test]
    fn aliases_are_followed_and_a_bomb_of_them_is_refused() {
        let shared = "base: &base {type: report}\nschedules: [{job: *base}]\n";
        assert_eq!(Format::Yaml.parse(shared).unwrap()["schedules"][0]["job"], json!({"type": "report"}));
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let before = format!("*a{}", level - 1);
            bomb.push_str(&format!("a{level}: &a{level} [{}]\n", [before.as_str(); 10].join(", ")));
        }
        assert!(Format::Yaml.parse(&bomb).is_err());
    }

    #[test]
    fn nesting_without_end_is_refused() {
        let deep = format!("a: {}1{}", "[".repeat(10_000), "]".repeat(10_000));
        assert!(Format::Yaml.parse(&deep).is_err());
        assert!(Format::Toml.parse(&deep.replacen(": ", " = ", 1)).is_err());
        assert!(Format::Json.parse(&format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000))).is_err());
    }
}
