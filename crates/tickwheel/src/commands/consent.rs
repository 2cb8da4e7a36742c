//! Asking before something is done that was perhaps not meant.

use std::io::{self, BufRead, IsTerminal, Write};

use super::CommandContext;
use crate::failure::CommandError;

/// Goes on only if somebody agrees: with `--yes` beforehand, or when asked. Whoever is not there cannot be asked, and must not be taken to
/// have agreed.
pub fn require(question: &str, yes: bool, context: &CommandContext) -> Result<(), CommandError> {
    if yes {
        return Ok(());
    }
    if !io::stdin().is_terminal() || context.output.json {
        let hint = "hint: say --yes to do it without being asked";
        return Err(CommandError::BadInput(format!(
            "not done, since there is nobody to ask: {question}\n{hint}"
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
