//! Reading what comes back, within a bound.

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;

use super::client::explain_exchange;
use crate::error::Error;

/// The body of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Captured {
    /// All of it.
    Whole(Bytes),
    /// Its beginning; the rest was never read.
    Cut(Bytes),
}

impl Captured {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Whole(bytes) | Self::Cut(bytes) => bytes,
        }
    }
}

/// Reads up to `bytes_max` bytes. A longer body is let go at once, and its connection with it.
pub(crate) async fn capture(mut body: Incoming, bytes_max: usize) -> Result<Captured, Error> {
    let mut read = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|error| explain_exchange(&error))?.into_data() else {
            continue; // trailers
        };
        let room = bytes_max - read.len();
        read.extend_from_slice(&data[..data.len().min(room)]);
        if data.len() > room {
            return Ok(Captured::Cut(read.into()));
        }
    }
    Ok(Captured::Whole(read.into()))
}

/// Bytes as text. A character that was cut in two at the end is left out; other strangers are replaced.
pub(crate) fn readable_text(bytes: &[u8]) -> String {
    let whole_characters = match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        _ => bytes,
    };
    String::from_utf8_lossy(whole_characters).into_owned()
}

/// The beginning of a text from outside, fit for a sentence: one line, no control characters.
pub(crate) fn excerpt(bytes: &[u8], chars_max: usize) -> String {
    let text = readable_text(bytes);
    let mut words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let mut line = words.next().unwrap_or_default().to_owned();
    for word in words {
        line.push(' ');
        line.push_str(word);
    }
    match line.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_one_short_line_without_control_characters() {
        assert_eq!(excerpt(b"  no\0 \x1b[31m such\r\n\tuser ", 500), "no [31m such user");
        assert_eq!(excerpt("äöü".as_bytes(), 2), "äö…");
        assert_eq!(excerpt("äöü".as_bytes(), 3), "äöü");
        assert_eq!(excerpt(b"", 3), "");
    }

    #[test]
    fn a_character_cut_in_two_is_left_out() {
        assert_eq!(readable_text(&"aä".as_bytes()[..2]), "a");
        assert_eq!(readable_text(b"a\xffb"), "a\u{fffd}b");
    }
}
