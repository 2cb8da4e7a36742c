//! What commands print: tables for people, JSON for machines.
//!
//! Text that came from elsewhere is stripped of control characters before it reaches a terminal. Colour appears only on
//! a terminal and only if `NO_COLOR` does not forbid it. Tables fit the terminal; anything else gets them whole.

mod fit;
mod json;
mod table;
mod time;

use std::io::{self, IsTerminal, Write};

pub use fit::{SHORT_ID_CHARS, column};
pub use json::pretty;
pub use table::{Layout, Table, Tone, facts};
pub use time::{length, moment, now, relative, short};

/// How a command prints.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    /// JSON as the server answered, instead of tables.
    pub json: bool,
    /// Colours are welcome.
    pub color: bool,
    /// Tables are to be no wider than this.
    pub width: Option<usize>,
}

/// How wide a terminal is that does not say.
const WIDTH_USUAL: usize = 80;

impl Output {
    /// What suits this terminal, or whatever standard output is. `wide` tables are not cut.
    pub fn detect(json: bool, wide: bool) -> Self {
        let forbidden = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let is_terminal = io::stdout().is_terminal();
        let width = (is_terminal && !wide).then(terminal_width);
        Self { json, color: is_terminal && !forbidden && !dumb, width }
    }

    /// Prints a result and ends its line.
    pub fn print(&self, text: &str) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        if !text.ends_with('\n') {
            stdout.write_all(b"\n")?;
        }
        stdout.flush()
    }

    /// Prints a part of a result; more of the same line may follow.
    pub fn print_part(&self, text: &str) -> io::Result<()> {
        io::stdout().lock().write_all(text.as_bytes())
    }

    /// Tells the user something that is not the result.
    pub fn note(&self, text: &str) {
        // Nobody can be told that standard error is closed.
        let _ = writeln!(io::stderr(), "{text}");
    }
}

/// As `ls` does it: what `COLUMNS` says, else what the terminal says.
fn terminal_width() -> usize {
    let said = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let seen = || rustix::termios::tcgetwinsize(io::stdout()).ok().map(|size| size.ws_col.into());
    said.or_else(seen).filter(|columns| *columns > 0).unwrap_or(WIDTH_USUAL)
}

/// `text` without control characters, so that it cannot play with the terminal.
pub fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// Like [`plain`], but line breaks and tabs stay.
pub fn plain_lines(text: &str) -> String {
    let keep = |c: char| c == '\n' || c == '\t' || !c.is_control();
    text.chars().map(|c| if keep(c) { c } else { '\u{fffd}' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_cannot_steer_the_terminal() {
        assert_eq!(plain("a\u{1b}[31mb\r\n"), "a\u{fffd}[31mb\u{fffd}\u{fffd}");
        assert_eq!(plain_lines("a\n\tb\u{7}"), "a\n\tb\u{fffd}");
    }
}
