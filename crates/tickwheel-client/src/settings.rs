//! Settings from the environment. Every mistake is reported, all of them together, each named by its variable.

use std::str::FromStr;

use crate::error::Error;

/// Reads variables and keeps the mistakes in them.
#[derive(Debug, Default)]
pub struct Environment {
    mistakes: Vec<String>,
}

impl Environment {
    /// The variable `TICKWHEEL_<name>`. An empty one counts as unset.
    pub fn text(&mut self, name: &str) -> Option<String> {
        let name = format!("TICKWHEEL_{name}");
        match std::env::var(&name) {
            Ok(value) if value.is_empty() => None,
            Ok(value) => Some(value),
            Err(std::env::VarError::NotPresent) => None,
            Err(std::env::VarError::NotUnicode(_)) => {
                self.mistake(format!("{name} is not UTF-8"));
                None
            }
        }
    }

    /// The variable, read as a `T`. `expected` completes the sentence "expected …".
    pub fn value<T: FromStr>(&mut self, name: &str, expected: &str) -> Option<T> {
        let text = self.text(name)?;
        let value = text.trim().parse().ok();
        if value.is_none() {
            self.mistake(format!("TICKWHEEL_{name}: expected {expected}, not {text:?}"));
        }
        value
    }

    /// The variable as a list with commas.
    pub fn list(&mut self, name: &str) -> Option<Vec<String>> {
        let text = self.text(name)?;
        let items = text.split(',').map(|item| item.trim().to_owned()).filter(|item| !item.is_empty());
        Some(items.collect())
    }

    /// Notes a mistake.
    pub fn mistake(&mut self, sentence: impl Into<String>) {
        self.mistakes.push(sentence.into());
    }

    /// The value, unless it is an error; then its mistakes are noted.
    pub fn keep<T>(&mut self, outcome: Result<T, Error>) -> Option<T> {
        match outcome {
            Ok(value) => Some(value),
            Err(Error::BadSettings(mistakes)) => {
                self.mistakes.extend(mistakes);
                None
            }
            Err(error) => {
                self.mistakes.push(error.to_string());
                None
            }
        }
    }

    /// Fails if there were mistakes.
    pub fn check(self) -> Result<(), Error> {
        if self.mistakes.is_empty() { Ok(()) } else { Err(Error::BadSettings(self.mistakes)) }
    }
}
