//! The server's rejections of entries, collected to be reported together.

use serde::de::DeserializeOwned;
use tickwheel_client::Answer;
use tickwheel_protocol::{Code, Problem};

use super::files::Entry;
use crate::failure::{CommandError, bad_field};
use crate::output::plain;

/// The rejections so far.
#[derive(Debug, Default)]
pub struct Refusals(Vec<String>);

impl Refusals {
    /// The answer for an entry, unless it was rejected. Only mistakes of the entry itself are collected; any other
    /// failure ends the command at once.
    pub fn keep<T>(
        &mut self,
        entry: &Entry,
        outcome: Result<T, CommandError>,
    ) -> Result<Option<T>, CommandError> {
        match outcome {
            Ok(value) => Ok(Some(value)),
            Err(CommandError::Refused(problem)) if problem.status < 500 => {
                self.0.extend(sentences(&problem).map(|sentence| format!("{entry}: {sentence}")));
                Ok(None)
            }
            Err(failure) => Err(failure),
        }
    }

    /// Fails if there are any.
    pub fn none(self) -> Result<(), CommandError> {
        if self.0.is_empty() { Ok(()) } else { Err(CommandError::BadInput(self.0.join("\n"))) }
    }
}

fn sentences(problem: &Problem) -> Box<dyn Iterator<Item = String> + '_> {
    if problem.errors.is_empty() {
        return Box::new(std::iter::once(plain(&problem.detail)));
    }
    Box::new(problem.errors.iter().map(bad_field))
}

/// The answer, or `None` if it does not exist.
pub fn found<T: DeserializeOwned>(
    answer: Result<Answer, tickwheel_client::Error>,
) -> Result<Option<T>, CommandError> {
    match answer {
        Ok(answer) => Ok(Some(answer.read()?)),
        Err(error) if error.code() == Some(Code::NotFound) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
