//! What a job is given: a JSON document.
//!
//! Ten thousand tasks of a run may be given the same large value. It is kept once, where it is anyway (the run's input,
//! a task's result), and their payloads refer to it:
//!
//! ```text
//!   run's input  {"text": "…250 kB…", "items": [0, 1, …]}
//!                          ▲
//!   payload      @["{\"n\":17,\"text\":", {"path": "input.text"}, "}"]
//! ```
//! Whoever sends or shows a payload puts the value in its place. No JSON document begins with `@`, so nobody takes the
//! one for the other.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::job::JsonText;

const REFERS: char = '@';

/// A payload as it is kept.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Payload(Arc<str>);

/// A value that is kept elsewhere in the run of the job.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Reference {
    /// The number of the task whose result it is part of. Zero: it is part of the run's input.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub task: u32,
    /// The path that leads to it.
    pub path: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// A part of a payload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Piece {
    /// Text that is here.
    Text(String),
    /// A value that is elsewhere.
    Reference(Reference),
}

impl Payload {
    /// As it was written down by [`as_str`](Self::as_str).
    pub fn from_stored(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// Put together from pieces that make a JSON document, one after the other.
    pub fn of_pieces(pieces: Vec<Piece>) -> Self {
        match <[Piece; 1]>::try_from(pieces) {
            Ok([Piece::Text(all)]) => Self(all.into()),
            Ok(pieces) => Self::refers(&pieces),
            Err(pieces) => Self::refers(&pieces),
        }
    }

    fn refers(pieces: &[Piece]) -> Self {
        let pieces = serde_json::to_string(pieces).expect("texts and numbers can be written");
        Self(format!("{REFERS}{pieces}").into())
    }

    /// As it is kept.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The document, if all of it is here.
    pub fn whole(&self) -> Option<JsonText> {
        (!self.0.starts_with(REFERS)).then(|| JsonText::from_checked(self.0.clone()))
    }

    /// Its pieces, in their order.
    pub fn pieces(&self) -> serde_json::Result<Vec<Piece>> {
        match self.0.strip_prefix(REFERS) {
            Some(pieces) => serde_json::from_str(pieces),
            None => Ok(vec![Piece::Text(self.0.to_string())]),
        }
    }
}

impl From<JsonText> for Payload {
    fn from(document: JsonText) -> Self {
        Self(document.into_shared())
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A JSON document in pieces, of which others may have the same ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Document {
    /// In one piece.
    Whole(JsonText),
    /// In several.
    Pieces(Vec<Arc<str>>),
}

impl Document {
    /// How many bytes it has.
    pub fn len(&self) -> usize {
        match self {
            Self::Whole(text) => text.as_str().len(),
            Self::Pieces(pieces) => pieces.iter().map(|piece| piece.len()).sum(),
        }
    }

    /// Whether there is nothing, not even `null`.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// In one piece.
    pub fn to_text(&self) -> JsonText {
        match self {
            Self::Whole(text) => text.clone(),
            Self::Pieces(pieces) => JsonText::from_checked(pieces.concat()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Piece {
        Piece::Text(text.into())
    }

    #[test]
    fn a_payload_without_references_is_its_document() {
        let document = JsonText::from_checked(r#"{"a":"@"}"#);
        let payload = Payload::from(document.clone());
        assert_eq!((payload.as_str(), payload.whole()), (r#"{"a":"@"}"#, Some(document)));
        assert_eq!(payload, Payload::of_pieces(vec![text(r#"{"a":"@"}"#)]));
        assert_eq!(payload.pieces().expect("pieces"), [text(r#"{"a":"@"}"#)]);
    }

    #[test]
    fn a_payload_with_references_is_no_document_and_has_its_pieces() {
        for (task, written) in [(0, r#"{"path":"input.x"}"#), (3, r#"{"task":3,"path":"input.x"}"#)] {
            let kept = Piece::Reference(Reference { task, path: "input.x".into() });
            let pieces = vec![text("{\"a\":"), kept.clone(), text("}")];
            let payload = Payload::of_pieces(pieces.clone());
            assert_eq!(payload.as_str(), format!(r#"@["{{\"a\":",{written},"}}"]"#));
            assert_eq!(payload.whole(), None);
            assert_eq!(Payload::from_stored(payload.as_str()).pieces().expect("pieces"), pieces);
            assert_eq!(Payload::of_pieces(vec![kept.clone()]).pieces().expect("pieces"), [kept]);
        }
    }

    #[test]
    fn a_document_in_pieces_is_their_text() {
        let document = Document::Pieces(vec!["[1,".into(), "2]".into()]);
        assert_eq!((document.len(), document.to_text().as_str()), (5, "[1,2]"));
    }
}
