//! Values that payloads of a run refer to ([`Payload`](crate::payload::Payload)): which are worth it, and how they are
//! found again.
//!
//! Only what does not change any more is referred to: the run's input, and results of tasks that have completed. A task
//! that is run again by hand takes those with it that used its result, and they get their data anew.

use std::sync::Arc;

use serde_json::Value;

use super::path::{INPUT, Path};
use super::prepare::{ParentData, as_value};
use crate::job::JsonText;
use crate::payload::Reference;
use crate::state::State;

/// Values of so many bytes or more are referred to. A smaller one is no more than what a job takes by itself.
pub(super) const KEPT_LEN_MIN: usize = 1024;

/// The number under which payloads refer to the run's input.
pub(super) const OF_INPUT: u32 = 0;

/// Where a path of the input, or of nothing, leads.
pub(super) fn kept_in_input(path: &Path) -> Option<u32> {
    (path.root == INPUT).then_some(OF_INPUT)
}

/// Whether a path leads to what a task will always have.
pub(super) fn is_for_good(path: &Path, task: &ParentData) -> bool {
    task.state == State::Completed && path.first_field() == Some("result")
}

/// What a reference leads into.
#[derive(Clone, Copy, Debug)]
pub enum ReferenceSource<'s> {
    /// The run's input.
    Input(&'s JsonText),
    /// A task that has completed.
    Task(&'s ParentData),
}

impl Reference {
    /// The value, as JSON.
    pub fn resolve_in(&self, source: ReferenceSource<'_>) -> Result<Arc<str>, String> {
        let path = Path::parse(&self.path).map_err(|bad| bad.to_string())?;
        match source {
            ReferenceSource::Task(task) if task.state != State::Completed => {
                return Err("it has not completed".into());
            }
            // Often it is all there is; then nobody has to read it.
            ReferenceSource::Input(text) if path.len() == 0 => return Ok(text.clone().into_shared()),
            ReferenceSource::Task(ParentData { result: Some(text), .. }) if path.len() == 1 => {
                return Ok(text.clone().into_shared());
            }
            _ => {}
        }
        let value = match source {
            ReferenceSource::Input(text) => serde_json::from_str(text.as_str()).unwrap_or(Value::Null),
            ReferenceSource::Task(task) => as_value(task),
        };
        Ok(path.walk(&value)?.to_string().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(state: State) -> ParentData {
        let result = Some(JsonText::from_checked(r#"{ "rows": [1, {"a": "é"}] }"#));
        ParentData { state, result, error: None }
    }

    fn text(path: &str, source: ReferenceSource<'_>) -> Result<String, String> {
        Reference { task: 1, path: path.into() }.resolve_in(source).map(|text| text.to_string())
    }

    #[test]
    fn a_value_is_found_again_by_its_path() {
        let task = task(State::Completed);
        let source = ReferenceSource::Task(&task);
        assert_eq!(text("t.result.rows[1]", source), Ok(r#"{"a":"é"}"#.into()));
        assert_eq!(text("t.result", source), Ok(r#"{ "rows": [1, {"a": "é"}] }"#.into()), "as it is kept");
        assert!(text("t.result.none", source).is_err());
        let again = self::task(State::Running);
        assert!(text("t.result", ReferenceSource::Task(&again)).is_err(), "it is being run again");
        let input = JsonText::from_checked(r#"{"a": [true]}"#);
        assert_eq!(text("input.a", ReferenceSource::Input(&input)), Ok("[true]".into()));
        assert_eq!(text("input", ReferenceSource::Input(&input)), Ok(r#"{"a": [true]}"#.into()));
    }

    #[test]
    fn only_what_does_not_change_is_referred_to() {
        let path = |text: &str| Path::parse(text).expect("a path");
        assert!(is_for_good(&path("t.result.rows"), &task(State::Completed)));
        assert!(!is_for_good(&path("t.status"), &task(State::Completed)));
        assert!(!is_for_good(&path("t.result"), &task(State::Skipped)));
        assert_eq!(kept_in_input(&path("input.a")), Some(OF_INPUT));
        assert_eq!(kept_in_input(&path("run.id")), None);
    }
}
