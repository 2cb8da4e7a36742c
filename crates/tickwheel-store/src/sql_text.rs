//! SQL that is put together when the program is compiled.
//!
//! A list that statements are made of is walked by a `const fn`, so a statement is a plain `&'static str` in the end:
//! nothing is put together while the program runs, and one that does not fit does not compile.

/// The longest list of columns there may be.
const CAPACITY: usize = 2_048;

/// Text that grows.
#[derive(Clone, Copy)]
pub(crate) struct SqlText {
    bytes: [u8; CAPACITY],
    len: usize,
}

impl SqlText {
    pub const EMPTY: Self = Self { bytes: [0; CAPACITY], len: 0 };

    #[must_use]
    pub const fn with(mut self, text: &str) -> Self {
        let mut at = 0;
        while at < text.len() {
            self.bytes[self.len] = text.as_bytes()[at];
            self.len += 1;
            at += 1;
        }
        self
    }

    /// The next item of a list.
    #[must_use]
    pub const fn with_item(self, text: &str) -> Self {
        let separated = if self.len == 0 { self } else { self.with(", ") };
        separated.with(text)
    }

    #[must_use]
    pub const fn with_number(self, number: usize) -> Self {
        let rest = if number < 10 { self } else { self.with_number(number / 10) };
        match std::str::from_utf8(&[b'0' + (number % 10) as u8]) {
            Ok(digit) => rest.with(digit),
            Err(_) => panic!("a digit is text"),
        }
    }

    pub const fn as_str(&self) -> &str {
        match std::str::from_utf8(self.bytes.split_at(self.len).0) {
            Ok(text) => text,
            Err(_) => panic!("it was put together of texts"),
        }
    }
}

/// Whether two names are the same.
pub(crate) const fn is_same(a: &str, b: &str) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut at = 0;
    while at < a.len() {
        if a.as_bytes()[at] != b.as_bytes()[at] {
            return false;
        }
        at += 1;
    }
    true
}

/// The text that an expression makes, as a constant.
macro_rules! sql {
    ($text:expr) => {{
        const TEXT: $crate::sql_text::SqlText = $text;
        TEXT.as_str()
    }};
}

pub(crate) use sql;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_separated_and_numbers_are_whole() {
        const LIST: &str =
            sql!(SqlText::EMPTY.with_item("a").with_item("$").with_number(1_205).with("::text[]"));
        assert_eq!(LIST, "a, $1205::text[]");
        assert!(is_same("state", "state") && !is_same("state", "stats") && !is_same("state", "states"));
    }
}
