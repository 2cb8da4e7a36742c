//! Why a task of a workflow waits: for which others, by their names; for its turn; or for its own elements.
//!
//! Deliberately not here: whether it may start. How the others stand is told, not found out.

use std::sync::Arc;
use std::time::Duration;

use super::{PARENTS_NAMED_MAX, Why, answer};
use crate::attempt::Failure;
use crate::state::State;
use crate::time::Timestamp;

/// A task that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingTask {
    /// What people call it: `load`, or `load[3].check`.
    pub path: String,
    /// Whether it cannot go on without help.
    pub blocked: bool,
    /// Since when it waits.
    pub since: Timestamp,
    /// For what.
    pub awaits: Awaited,
}

/// What a task waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// The tasks it depends on.
    Tasks {
        /// All of them, as clients see them: a fan-out runs while one of its items does.
        parents: Vec<ParentTask>,
        /// One of them has been running for more than this, which is too long.
        stalled_for: Option<Duration>,
    },
    /// All other tasks of the run to be over.
    TheOthers,
    /// Its turn among the elements of a fan-out, of which only so many go at a time.
    ItsTurn,
    /// Its own elements.
    Items {
        /// How many there are.
        total: u32,
        /// How many of them are over.
        ended: u32,
        /// How many of them ended badly.
        failed: u32,
    },
}

/// A task that another one depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParentTask {
    /// Its name.
    pub name: Arc<str>,
    /// Where it stands.
    pub state: State,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Why it failed.
    pub error: Option<Failure>,
}

impl ParentTask {
    const fn goes_on(&self) -> bool {
        !self.state.is_terminal() && !matches!(self.state, State::Blocked)
    }

    const fn stands_in_the_way(&self) -> bool {
        matches!(self.state, State::Failed | State::Cancelled | State::Blocked)
    }
}

/// Why the task waits.
pub fn explain_task(task: &WaitingTask) -> Why {
    let path = &task.path;
    let waiting =
        |code, sentence: String, waits_for| Why { sentence, ..answer(code, "", Some(waits_for), task.since) };
    match &task.awaits {
        Awaited::Tasks { parents, .. } if task.blocked => explain_blocked(task, parents),
        Awaited::Tasks { parents, stalled_for } => explain_pending(task, parents, *stalled_for),
        Awaited::TheOthers => {
            let sentence = format!("task {path} starts when all others have ended");
            waiting("waits_for_parents", sentence, "the other tasks")
        }
        Awaited::ItsTurn => {
            let sentence =
                format!("task {path} waits for its turn: the fan-out limits how many items run at once");
            waiting("waits_for_turn", sentence, "its turn")
        }
        Awaited::Items { total, failed, .. } if task.blocked => {
            let sentence = format!("{failed} of {total} items of task {path} did not complete; retry them");
            waiting("items_failed", sentence, "failed items")
        }
        Awaited::Items { total, ended, .. } => {
            let sentence = format!("{ended} of {total} items of task {path} have ended");
            waiting("waits_for_items", sentence, "its items")
        }
    }
}

fn explain_pending(task: &WaitingTask, parents: &[ParentTask], stalled_for: Option<Duration>) -> Why {
    let open: Vec<&ParentTask> = parents.iter().filter(|parent| parent.goes_on()).collect();
    let path = &task.path;
    let sentence = match (open.len(), parents.len()) {
        (0, _) => {
            let sentence = format!("task {path} will start in a moment, if its condition holds");
            return Why { sentence, ..answer("about_to_start", "", None, task.since) };
        }
        (1, 1) => format!("task {path} waits for {}", named(&open)),
        (waiting, all) => format!("task {path} waits for {waiting} of {all} tasks: {}", named(&open)),
    };
    match stalled_for {
        None => Why { sentence, ..answer("waits_for_parents", "", Some("its parents"), task.since) },
        Some(limit) => {
            let which = if open.len() == 1 { "which" } else { "one of which" };
            let sentence = format!("{sentence}, {which} has been running for more than {}", seconds(limit));
            Why { sentence, ..answer("stalled", "", Some("its parents"), task.since) }
        }
    }
}

fn explain_blocked(task: &WaitingTask, parents: &[ParentTask]) -> Why {
    let bad: Vec<&ParentTask> = parents.iter().filter(|parent| parent.stands_in_the_way()).collect();
    let path = &task.path;
    let sentence = match bad.as_slice() {
        [] => format!("task {path} waits for a task that did not complete; retry, skip or complete that one"),
        [parent] => {
            let end = match (parent.state, &parent.error) {
                (State::Blocked, _) => "is blocked itself".to_owned(),
                (State::Cancelled, _) => "was cancelled; retry, skip or complete that one".to_owned(),
                (_, Some(error)) => format!("failed: {}; retry, skip or complete that one", error.message),
                (_, None) => "failed; retry, skip or complete that one".to_owned(),
            };
            format!("task {path} waits for {}, which {end}", parent.name)
        }
        several => format!(
            "task {path} waits for {} of {} tasks that did not complete: {}; retry, skip or complete them",
            several.len(),
            parents.len(),
            named(several)
        ),
    };
    let since = bad.iter().filter_map(|parent| parent.ended_at).min().unwrap_or(task.since);
    Why { sentence, ..answer("parent_failed", "", Some("a failed parent"), since) }
}

/// The first few with their states, and how many more there are.
fn named(parents: &[&ParentTask]) -> String {
    let first: Vec<String> = parents
        .iter()
        .take(PARENTS_NAMED_MAX)
        .map(|parent| format!("{} ({})", parent.name, parent.state))
        .collect();
    match parents.len() - first.len() {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

fn seconds(limit: Duration) -> String {
    format!("{} s", limit.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000);

    fn parent(name: &str, state: State) -> ParentTask {
        let ended_at = state.is_terminal().then(|| Timestamp::from_millis(700));
        let error = (state == State::Failed).then(|| Failure::new("http_status", "it said 500"));
        ParentTask { name: name.into(), state, ended_at, error }
    }

    fn why(blocked: bool, awaits: Awaited) -> (&'static str, String) {
        let task = WaitingTask { path: "load".into(), blocked, since: NOW, awaits };
        let why = explain_task(&task);
        (why.code, why.sentence)
    }

    fn tasks(parents: &[ParentTask]) -> Awaited {
        Awaited::Tasks { parents: parents.to_vec(), stalled_for: None }
    }

    #[test]
    fn a_task_names_those_it_waits_for() {
        use State::{Completed, Running, Scheduled};
        let (code, sentence) = why(false, tasks(&[parent("extract", Running)]));
        assert_eq!((code, sentence.as_str()), ("waits_for_parents", "task load waits for extract (running)"));
        let two = [parent("a", Running), parent("b", Completed), parent("c", Scheduled)];
        assert_eq!(why(false, tasks(&two)).1, "task load waits for 2 of 3 tasks: a (running), c (scheduled)");
        let many: Vec<_> = (0..9).map(|n| parent(&format!("t{n}"), Running)).collect();
        assert!(why(false, tasks(&many)).1.ends_with("t4 (running) and 4 more"));
        assert_eq!(why(false, tasks(&[parent("a", Completed)])).0, "about_to_start");
    }

    #[test]
    fn a_task_whose_parent_takes_too_long_is_stalled() {
        let limit = Some(Duration::from_millis(1_500));
        let parents = vec![parent("extract", State::Running), parent("other", State::Completed)];
        let (code, sentence) = why(false, Awaited::Tasks { parents, stalled_for: limit });
        assert_eq!(code, "stalled");
        assert_eq!(
            sentence,
            "task load waits for 1 of 2 tasks: extract (running), which has been running for more than 1.5 s"
        );
    }

    #[test]
    fn a_blocked_task_says_what_can_be_done_about_it() {
        use State::{Blocked, Cancelled, Completed, Failed};
        let one = |state| why(true, tasks(&[parent("a", Completed), parent("extract", state)])).1;
        assert_eq!(
            one(Failed),
            "task load waits for extract, which failed: it said 500; retry, skip or complete that one"
        );
        assert_eq!(
            one(Cancelled),
            "task load waits for extract, which was cancelled; retry, skip or complete that one"
        );
        assert_eq!(one(Blocked), "task load waits for extract, which is blocked itself");
        let (code, sentence) = why(true, tasks(&[parent("a", Failed), parent("b", Cancelled)]));
        assert_eq!(code, "parent_failed");
        assert_eq!(
            sentence,
            "task load waits for 2 of 2 tasks that did not complete: a (failed), b (cancelled); retry, skip or complete them"
        );
    }

    #[test]
    fn items_are_counted() {
        let items = |failed| Awaited::Items { total: 10, ended: 4, failed };
        assert_eq!(why(false, items(0)).1, "4 of 10 items of task load have ended");
        assert_eq!(why(true, items(2)).1, "2 of 10 items of task load did not complete; retry them");
        assert_eq!(why(false, Awaited::ItsTurn).0, "waits_for_turn");
        assert_eq!(why(false, Awaited::TheOthers).1, "task load starts when all others have ended");
    }
}
