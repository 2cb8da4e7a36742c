//! What a line of a crontab is: a comment, a variable, or a time with something to do.
//!
//! Pure, and without memory: what a variable means for the lines after it is not known here.

/// A line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// Nothing.
    Blank,
    /// The text of a comment.
    Comment(&'a str),
    /// `NAME=value`.
    Variable {
        /// The name, without quotes.
        name: &'a str,
        /// The value, without quotes.
        value: &'a str,
    },
    /// A time and what is to be done.
    Entry {
        /// Five fields or a nickname, a blank between the fields.
        when: String,
        /// The rest of the line.
        rest: &'a str,
    },
}

/// Reads a line, or says what is wrong with it.
pub fn read(text: &str) -> Result<Line<'_>, String> {
    // Blanks at the end belong to a command; the line break of another system does not.
    let text = text.strip_suffix('\r').unwrap_or(text).trim_start();
    if text.trim_end().is_empty() {
        return Ok(Line::Blank);
    }
    if let Some(comment) = text.strip_prefix('#') {
        return Ok(Line::Comment(comment.trim()));
    }
    if let Some((name, value)) = variable(text) {
        return if is_variable_name(name) {
            Ok(Line::Variable { name, value })
        } else {
            Err(format!("{name:?} is not the name of a variable"))
        };
    }
    entry(text)
}

/// `NAME=value`, blanks around the sign and quotes around either side allowed.
fn variable(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = match text.chars().next().filter(|c| is_quote(*c)) {
        Some(quote) => text[1..].split_once(quote)?,
        None => text.split_at(text.find(|c: char| c == '=' || c.is_whitespace())?),
    };
    let value = rest.trim_start().strip_prefix('=')?;
    Some((name, unquoted(value.trim())))
}

fn is_quote(c: char) -> bool {
    matches!(c, '"' | '\'')
}

/// Quotes count only if the same one stands at both ends.
fn unquoted(value: &str) -> &str {
    let inside = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    inside('"').or_else(|| inside('\'')).unwrap_or(value)
}

fn is_variable_name(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && name.chars().all(is_part) && !name.starts_with(|c: char| c.is_ascii_digit())
}

fn entry(text: &str) -> Result<Line<'_>, String> {
    if text.starts_with('-') {
        return Err("a `-` before the time is a sign of other crons (do not log); remove it".into());
    }
    let count = if text.starts_with('@') { 1 } else { 5 };
    let mut fields = Vec::with_capacity(count);
    let mut rest = text;
    for _ in 0..count {
        let (field, after) = first_word(rest);
        fields.push(field);
        rest = after;
    }
    if rest.trim().is_empty() {
        return Err("expected five fields (or a nickname such as @daily) and a command after them".into());
    }
    Ok(Line::Entry { when: fields.join(" "), rest })
}

/// The first word, and what follows the blanks after it.
pub fn first_word(text: &str) -> (&str, &str) {
    let (word, rest) = text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()));
    (word, rest.trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(name: &'static str, value: &'static str) -> Result<Line<'static>, String> {
        Ok(Line::Variable { name, value })
    }

    fn entry(when: &str, rest: &'static str) -> Result<Line<'static>, String> {
        Ok(Line::Entry { when: when.into(), rest })
    }

    #[test]
    fn blank_lines_and_comments_are_told_from_entries() {
        for blank in ["", "   ", "\t", "\r"] {
            assert_eq!(read(blank), Ok(Line::Blank), "{blank:?}");
        }
        assert_eq!(read("  # nightly "), Ok(Line::Comment("nightly")));
        assert_eq!(read("#"), Ok(Line::Comment("")));
        // There are no comments behind a command.
        assert_eq!(read("@daily run # twice"), entry("@daily", "run # twice"));
    }

    #[test]
    fn a_variable_may_have_blanks_and_quotes() {
        assert_eq!(read("SHELL=/bin/bash"), variable("SHELL", "/bin/bash"));
        assert_eq!(read("  PATH = /bin:/usr/bin  "), variable("PATH", "/bin:/usr/bin"));
        assert_eq!(read(r#"GREETING=" hello ""#), variable("GREETING", " hello "));
        assert_eq!(read("\"A\"='x y'"), variable("A", "x y"));
        assert_eq!(read("MAILTO=\"\""), variable("MAILTO", ""));
        assert_eq!(read("MAILTO="), variable("MAILTO", ""));
        assert_eq!(read("A=\"x'"), variable("A", "\"x'"), "quotes that do not match are part of it");
        assert_eq!(read("A=b=c"), variable("A", "b=c"));
    }

    #[test]
    fn an_equals_sign_in_a_command_makes_no_variable() {
        assert_eq!(read("* * * * * A=b run"), entry("* * * * *", "A=b run"));
        assert_eq!(read("@hourly A=b run"), entry("@hourly", "A=b run"));
    }

    #[test]
    fn fields_may_be_apart_by_any_blanks_and_the_command_stays_as_it_is() {
        assert_eq!(
            read("\t*/5  1,2\t* JAN mon-fri   run  'a  b' "),
            entry("*/5 1,2 * JAN mon-fri", "run  'a  b' ")
        );
        assert_eq!(read("@daily\trun\r"), entry("@daily", "run"));
    }

    #[test]
    fn what_is_none_of_these_is_refused() {
        for (text, part) in [
            ("0 2 * * *", "a command"),
            ("0 2 * *", "a command"),
            ("@daily", "a command"),
            ("run", "a command"),
            ("-*/15 * * * * run", "`-`"),
            ("1A=b", "not the name of a variable"),
            ("=b", "not the name of a variable"),
        ] {
            let problem = read(text).unwrap_err();
            assert!(problem.contains(part), "{text}: {problem}");
        }
    }
}
