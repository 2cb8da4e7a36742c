//! What is told of a run, and to whom.
//!
//! Deliberately not here: the words in which a receiver hears of it. Whoever sends a notice finds them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::definition::{RunEvent, Workflow};
use super::run::{Run, RunNotice};
use crate::id::RunId;
use crate::job::JsonText;
use crate::time::Timestamp;

/// Tasks that are named in a notice.
const NAMED_MAX: usize = 20;

/// Something that happened to a run. The stores keep it as one document until it is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunEventDetails {
    /// What.
    pub event: RunEvent,
    /// When.
    pub at: Timestamp,
    /// To which run.
    pub run: RunId,
    /// Of this workflow
    pub workflow: Arc<str>,
    /// and this version,
    pub version: u32,
    /// whose it is,
    pub tenant: Arc<str>,
    /// when it began,
    pub created_at: Timestamp,
    /// and what it was given.
    pub input: JsonText,
    /// The tasks that it is about, by name; not all if they are many.
    pub tasks: Vec<String>,
    /// How many they are.
    pub tasks_count: usize,
}

impl RunEventDetails {
    /// How the run stands since then.
    pub const fn status(&self) -> &'static str {
        match self.event {
            RunEvent::Stalled => RunEvent::Running.as_str(),
            event => event.as_str(),
        }
    }

    /// As it is stored.
    pub fn to_text(&self) -> JsonText {
        JsonText::from_checked(serde_json::to_string(self).expect("it has only strings and numbers"))
    }

    /// What is stored; `None`: that was written before there were news, and is what a receiver is told.
    pub fn from_text(text: &JsonText) -> Option<Self> {
        serde_json::from_str(text.as_str()).ok()
    }
}

/// The notices of an event, for all who want to know of it. `tasks` are those it is about, by name.
pub(super) fn notices(
    workflow: &Workflow,
    run: &Run,
    event: RunEvent,
    tasks: &[String],
    now: Timestamp,
) -> Vec<RunNotice> {
    let who = workflow.spec.notify.iter().filter(|notify| notify.on.contains(&event));
    let news = || RunEventDetails {
        event,
        at: now,
        run: run.id,
        workflow: run.workflow.clone(),
        version: run.version,
        tenant: run.tenant.clone(),
        created_at: run.created_at,
        input: run.input.clone(),
        tasks: tasks.iter().take(NAMED_MAX).cloned().collect(),
        tasks_count: tasks.len(),
    };
    who.map(|notify| RunNotice { url: notify.url.clone(), body: news().to_text() }).collect()
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn news_are_read_as_they_were_written_and_older_documents_are_told_apart() {
        let news = RunEventDetails {
            event: RunEvent::Stalled,
            at: Timestamp::from_millis(5),
            run: RunId::fresh(Uuid::from_u128(1 << 64)),
            workflow: "etl".into(),
            version: 2,
            tenant: "acme".into(),
            created_at: Timestamp::EPOCH,
            input: JsonText::from_checked(r#"{"n": 2.50}"#),
            tasks: vec!["load".into()],
            tasks_count: 21,
        };
        assert_eq!(RunEventDetails::from_text(&news.to_text()), Some(news.clone()));
        assert_eq!(news.status(), "running", "a run that stalls goes on");
        let older = JsonText::from_checked(r#"{"type":"workflow_run.failed","timestamp":"x","data":{}}"#);
        assert_eq!(RunEventDetails::from_text(&older), None);
    }
}
