//! The percent signs of a command: the first one ends it, what follows is its standard input, further ones are line breaks there, and
//! one with a backslash before it is an ordinary percent sign. As in Debian's cron, to the character.

/// A command and what it reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// For the shell.
    pub text: String,
    /// Its standard input, if it has any.
    pub stdin: Option<String>,
}

/// Takes a command apart.
pub fn split(written: &str) -> Command {
    let mut text = String::with_capacity(written.len());
    let mut escaped = false;
    for (at, c) in written.char_indices() {
        match c {
            '%' if escaped => {
                text.pop();
                text.push('%');
            }
            '%' => return Command { text, stdin: input(&written[at + 1..]) },
            c => text.push(c),
        }
        escaped = c == '\\' && !escaped;
    }
    Command { text, stdin: None }
}

/// It ends with a line break, unless there is none of it.
fn input(written: &str) -> Option<String> {
    if written.is_empty() {
        return None;
    }
    let mut text = String::with_capacity(written.len() + 1);
    let mut escaped = false;
    for c in written.chars() {
        match c {
            '%' if escaped => {
                text.pop();
                text.push('%');
            }
            '%' => text.push('\n'),
            c => text.push(c),
        }
        escaped = c == '\\';
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(written: &str) -> (String, Option<String>) {
        let Command { text, stdin } = split(written);
        (text, stdin)
    }

    #[test]
    fn a_command_without_percent_signs_stays_as_it_is() {
        assert_eq!(parts(r"echo a\b \\ '\n'"), (r"echo a\b \\ '\n'".into(), None));
    }

    #[test]
    fn the_first_sign_ends_the_command_and_the_others_are_line_breaks() {
        let (text, stdin) = parts("mail -s 'It is 10pm' joe%Joe,%%Where are your kids?%");
        assert_eq!(text, "mail -s 'It is 10pm' joe");
        assert_eq!(stdin.as_deref(), Some("Joe,\n\nWhere are your kids?\n"));
        assert_eq!(parts("cat%one line"), ("cat".into(), Some("one line\n".into())));
    }

    #[test]
    fn a_backslash_makes_it_an_ordinary_sign() {
        assert_eq!(parts(r"date +\%Y-\%m"), ("date +%Y-%m".into(), None));
        assert_eq!(parts(r"cat%100\%%done"), ("cat".into(), Some("100%\ndone\n".into())));
    }

    #[test]
    fn a_backslash_that_is_escaped_itself_escapes_nothing() {
        assert_eq!(parts(r"echo \\%in"), (r"echo \\".into(), Some("in\n".into())));
    }

    #[test]
    fn a_sign_at_the_end_leaves_nothing_to_read() {
        assert_eq!(parts("cat%"), ("cat".into(), None));
    }
}
