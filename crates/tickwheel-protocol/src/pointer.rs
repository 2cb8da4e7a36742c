//! JSON pointers (RFC 6901).

use std::fmt::Write as _;

/// Appends one object key, escaped.
pub fn push_key(pointer: &mut String, key: &str) {
    pointer.push('/');
    for c in key.chars() {
        match c {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            c => pointer.push(c),
        }
    }
}

/// Appends one array index.
pub fn push_index(pointer: &mut String, index: usize) {
    write!(pointer, "/{index}").expect("writing to a string cannot fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_inside_keys_are_escaped() {
        let mut pointer = String::new();
        push_key(&mut pointer, "a/b~c");
        push_index(&mut pointer, 3);
        assert_eq!(pointer, "/a~1b~0c/3");
    }
}
