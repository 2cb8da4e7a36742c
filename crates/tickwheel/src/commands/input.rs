//! Input that several commands take in the same form: a text on the command line, a file (`@FILE`) or standard input
//! (`-`); headers and labels.

use std::io::Read;
use std::path::Path;

use serde_json::value::RawValue;
use tickwheel_protocol::Label;

use crate::failure::{CommandError, said};

/// The text of a file, or of standard input if it is called `-`.
pub fn read_file(path: &Path) -> Result<String, CommandError> {
    let bad = |error: std::io::Error| {
        CommandError::BadInput(format!("cannot read {}: {}", path.display(), said(&error)))
    };
    if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map_err(bad)?;
        return Ok(text);
    }
    std::fs::read_to_string(path).map_err(bad)
}

/// JSON from an argument: the text itself, `@FILE`, or `-` for standard input.
pub fn json_argument(name: &str, argument: &str) -> Result<Box<RawValue>, CommandError> {
    let text = match argument.strip_prefix('@') {
        Some(path) => read_file(Path::new(path))?,
        None if argument == "-" => read_file(Path::new("-"))?,
        None => argument.to_owned(),
    };
    json_text(name, &text)
}

/// `text`, if it is one JSON value.
pub fn json_text(name: &str, text: &str) -> Result<Box<RawValue>, CommandError> {
    serde_json::from_str(text)
        .map_err(|error| CommandError::BadInput(format!("{name} is not valid JSON: {error}")))
}

/// A request header: `NAME:VALUE`. The server checks it.
pub fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("expected NAME:VALUE")?;
    Ok((name.trim().into(), value.trim().into()))
}

/// Parses a label: `NAME=VALUE`.
pub fn label(text: &str) -> Result<(String, Label), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() && !value.trim().is_empty() => {
            Ok((name.trim().to_owned(), Label::read(value.trim())))
        }
        _ => Err("expected NAME=VALUE, such as site=dmz".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_split_at_its_first_colon() {
        assert_eq!(header("A: b:c "), Ok(("A".into(), "b:c".into())));
        assert!(header("A b").is_err());
    }

    #[test]
    fn json_is_taken_from_the_line_or_from_a_file() {
        assert_eq!(json_argument("--payload", "{\"a\":1}").unwrap().get(), "{\"a\":1}");
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("payload.json");
        std::fs::write(&path, "[1]\n").unwrap();
        let argument = format!("@{}", path.display());
        assert_eq!(json_argument("--payload", &argument).unwrap().get(), "[1]");
    }

    #[test]
    fn bad_json_names_the_option_it_came_from() {
        let failure = json_argument("--payload", "{a}").unwrap_err().to_string();
        assert!(failure.starts_with("--payload is not valid JSON"), "{failure}");
    }
}
