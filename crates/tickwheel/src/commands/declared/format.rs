//! YAML and TOML into JSON, which is what the server takes.
//!
//! Stricter than the formats: a key that stands twice is refused, and only `true` and `false` are booleans (`on` and `no` are texts).
//! Dates and times of TOML become the texts they were written as.

use std::path::Path;

use clap::ValueEnum;
use serde_json::{Map, Number, Value};

use crate::failure::Failure;

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// YAML
    Yaml,
    /// TOML
    Toml,
}

impl Format {
    /// The format that the ending of the name tells; standard input is YAML.
    pub fn of(path: &Path) -> Result<Self, Failure> {
        if path == Path::new("-") {
            return Ok(Self::Yaml);
        }
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("yaml" | "yml") => Ok(Self::Yaml),
            Some("toml") => Ok(Self::Toml),
            _ => {
                let detail = "its name has to end in .yaml, .yml or .toml";
                Err(Failure::BadInput(format!("{}: {detail}", path.display())))
            }
        }
    }

    /// The document, or what is wrong with it and in which line.
    pub fn parse(self, text: &str) -> Result<Value, String> {
        match self {
            Self::Yaml => yaml(text),
            Self::Toml => toml(text),
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
    json(toml::Value::Table(table))
}

fn json(value: toml::Value) -> Result<Value, String> {
    Ok(match value {
        toml::Value::String(text) => Value::String(text),
        toml::Value::Integer(number) => Value::Number(number.into()),
        toml::Value::Float(number) => {
            let written = Number::from_f64(number).map(Value::Number);
            written.ok_or_else(|| format!("{number} is a number that JSON does not have"))?
        }
        toml::Value::Boolean(truth) => Value::Bool(truth),
        toml::Value::Datetime(time) => Value::String(time.to_string()),
        toml::Value::Array(items) => Value::Array(items.into_iter().map(json).collect::<Result<_, _>>()?),
        toml::Value::Table(members) => {
            let members = members.into_iter().map(|(name, value)| Ok((name, json(value)?)));
            Value::Object(members.collect::<Result<Map<_, _>, String>>()?)
        }
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
    fn a_key_that_stands_twice_is_refused_in_both_formats() {
        for (format, text) in [(Format::Yaml, "a: 1\nb: 2\na: 3\n"), (Format::Toml, "a = 1\nb = 2\na = 3\n")]
        {
            let problem = format.parse(text).unwrap_err();
            assert!(problem.contains("line 3"), "{problem}");
        }
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
    }
}
