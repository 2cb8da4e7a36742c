//! JSON with line breaks. Works on the text, so that numbers and the order of keys stay as the server wrote them.

/// `text`, which has to be valid JSON, with one member a line.
pub fn pretty(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    let mut depth: usize = 0;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let token_len = if c == '"' { string_len(rest) } else { c.len_utf8() };
        let (token, after) = rest.split_at(token_len);
        rest = after;
        match c {
            '{' | '[' => {
                out.push(c);
                let inside = rest.trim_start();
                if inside.starts_with(['}', ']']) {
                    out.push_str(&inside[..1]);
                    rest = &inside[1..];
                } else {
                    depth += 1;
                    new_line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                new_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            c if c.is_ascii_whitespace() => {}
            _ => out.push_str(token),
        }
    }
    out
}

/// How long the string at the start of `text` is, with its quotes.
fn string_len(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_stand_on_lines_of_their_own_in_the_order_they_came() {
        let text = r#"{"z":1,"a":[1.50,{ }],"empty":[ ],"text":"a, \\\"{b}\" é"}"#;
        let expected = "{\n  \"z\": 1,\n  \"a\": [\n    1.50,\n    {}\n  ],\n  \"empty\": [],\n  \"text\": \"a, \\\\\\\"{b}\\\" é\"\n}";
        assert_eq!(pretty(text), expected);
    }

    #[test]
    fn what_is_pretty_already_stays_the_same() {
        let once = pretty(r#"{"a":{"b":[null,true,"x"]},"c":-1e9}"#);
        assert_eq!(pretty(&once), once);
        let parse = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(parse(&once), parse(r#"{"a":{"b":[null,true,"x"]},"c":-1e9}"#));
    }
}
