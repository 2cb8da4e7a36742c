//! Asks before a command does something that may not be intended.

use std::io::{self, BufRead, IsTerminal, Write};

use super::CommandContext;
use crate::failure::CommandError;

/// Goes on only with consent: `--yes`, or an answer on the terminal. Without a terminal nobody can be asked, and
/// silence is not consent.
pub fn require(question: &str, yes: bool, context: &CommandContext) -> Result<(), CommandError> {
    if yes {
        return Ok(());
    }
    if !io::stdin().is_terminal() || context.output.json {
        let hint = "hint: use --yes to skip the question";
        return Err(CommandError::BadInput(format!(
            "not done, because there is no terminal to ask on: {question}\n{hint}"
        )));
    }
    if ask(question)? { Ok(()) } else { Err(CommandError::NotGood("nothing was changed".into())) }
}

/// Asks on the terminal.
pub fn ask(question: &str) -> io::Result<bool> {
    let mut stderr = io::stderr();
    write!(stderr, "{question} [y/N] ")?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
