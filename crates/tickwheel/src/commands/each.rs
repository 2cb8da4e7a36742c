//! The same for each of several things.

use super::Session;
use crate::failure::Failure;

/// Does `act` to each. One that cannot be done does not keep the others from it. Each failure says what it is about, and the first one
/// decides the exit code.
pub async fn each(
    what: &str,
    names: &[String],
    session: &Session,
    act: impl AsyncFn(&str) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut first = None;
    for name in names {
        let Err(failure) = act(name).await else { continue };
        // It would be the same with all the others.
        if matches!(failure, Failure::NoConnection { .. } | Failure::OutputClosed) {
            return Err(failure);
        }
        let failure = failure.about(what, name);
        if names.len() == 1 {
            return Err(failure);
        }
        session.output.note(&format!("error: {failure}"));
        first.get_or_insert(failure);
    }
    first.map_or(Ok(()), |failure| Err(Failure::Told(Box::new(failure))))
}
