//! Lists and the opaque cursors that continue them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How many items a page has unless the request says otherwise.
pub const LIMIT_DEFAULT: usize = 50;
/// How many items a page may have.
pub const LIMIT_MAX: usize = 1000;

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct List<T> {
    /// The items, in order.
    pub items: Vec<T>,
    /// The cursor of the next page: pass it as `cursor`. `null` on the last page. A short page need not be the last
    /// one.
    pub next_cursor: Option<String>,
}

impl<T> List<T> {
    /// A list that fits on one page.
    pub const fn complete(items: Vec<T>) -> Self {
        Self { items, next_cursor: None }
    }
}

/// Encodes a position in a list. `kind` tells the lists apart, so that a cursor of one is not accepted by another.
pub fn encode_cursor(kind: u8, place: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(1 + place.len());
    bytes.push(kind);
    bytes.extend_from_slice(place);
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The position in a cursor of that kind, or `None` if it is not one. The position must be exactly `N` bytes.
pub fn decode_cursor<const N: usize>(kind: u8, cursor: &str) -> Option<[u8; N]> {
    place_of(kind, cursor)?.try_into().ok()
}

/// Like [`decode_cursor`], for positions that are text.
pub fn decode_text_cursor(kind: u8, cursor: &str) -> Option<String> {
    // No name has control characters, and not every store can look for them.
    String::from_utf8(place_of(kind, cursor)?).ok().filter(|text| !text.chars().any(char::is_control))
}

fn place_of(kind: u8, cursor: &str) -> Option<Vec<u8>> {
    let mut bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
    let found = *bytes.first()?;
    bytes.remove(0);
    (found == kind).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_comes_back_only_as_what_it_was() {
        let cursor = encode_cursor(b'j', &[1, 2, 3]);
        assert_eq!(decode_cursor(b'j', &cursor), Some([1, 2, 3]));
        assert_eq!(decode_cursor::<3>(b'd', &cursor), None);
        assert_eq!(decode_cursor::<4>(b'j', &cursor), None);
        assert_eq!(decode_cursor::<3>(b'j', "not base64!"), None);
        assert_eq!(decode_cursor::<3>(b'j', ""), None);
    }

    #[test]
    fn a_place_that_is_text_comes_back_whatever_its_length() {
        for name in ["", "a", "täglich um zwei"] {
            let cursor = encode_cursor(b's', name.as_bytes());
            assert_eq!(decode_text_cursor(b's', &cursor).as_deref(), Some(name));
            assert_eq!(decode_text_cursor(b'j', &cursor), None);
        }
        assert_eq!(decode_text_cursor(b's', &encode_cursor(b's', &[0xff])), None);
    }
}
