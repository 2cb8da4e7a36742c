//! Applies the same action to several things.

use super::CommandContext;
use crate::failure::CommandError;

/// Applies `act` to each. A failure does not stop the others. Each failure says what it is about, and the first one
/// decides the exit code.
pub async fn each(
    what: &str,
    names: &[String],
    context: &CommandContext,
    act: impl AsyncFn(&str) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    let mut first = None;
    for name in names {
        let Err(failure) = act(name).await else { continue };
        // It would be the same with all the others.
        if matches!(failure, CommandError::NoConnection { .. } | CommandError::OutputClosed) {
            return Err(failure);
        }
        let failure = failure.about(what, name);
        if names.len() == 1 {
            return Err(failure);
        }
        context.output.note(&format!("error: {failure}"));
        first.get_or_insert(failure);
    }
    first.map_or(Ok(()), |failure| Err(CommandError::Told(Box::new(failure))))
}
