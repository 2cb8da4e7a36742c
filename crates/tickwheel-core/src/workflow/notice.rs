//! What is told of a run, and to whom: documents in the form of Standard Webhooks events.

use serde_json::json;

use super::definition::{RunEvent, Workflow};
use super::run::{Run, RunNotice};
use crate::job::JsonText;
use crate::time::Timestamp;

/// Tasks that are named in a notice.
const NAMED_MAX: usize = 20;

/// The notices of an event, for all who want to know of it. `tasks` are those it is about, by name.
pub(super) fn notices(
    workflow: &Workflow,
    run: &Run,
    event: RunEvent,
    tasks: &[String],
    now: Timestamp,
) -> Vec<RunNotice> {
    let who = workflow.spec.notify.iter().filter(|notify| notify.on.contains(&event));
    who.map(|notify| RunNotice { url: notify.url.clone(), body: body(run, event, tasks, now) }).collect()
}

fn body(run: &Run, event: RunEvent, tasks: &[String], now: Timestamp) -> JsonText {
    let input: serde_json::Value = serde_json::from_str(run.input.as_str()).unwrap_or_default();
    let document = json!({
        "type": format!("workflow_run.{event}"),
        "timestamp": rfc3339(now),
        "data": {
            "id": run.id.to_string(),
            "workflow": &*run.workflow,
            "version": run.version,
            "tenant": &*run.tenant,
            "status": match event { RunEvent::Stalled => "running", event => event.as_str() },
            "created_at": rfc3339(run.created_at),
            "input": input,
            "tasks": tasks.iter().take(NAMED_MAX).collect::<Vec<_>>(),
            "tasks_count": tasks.len(),
        },
    });
    JsonText::from_checked(document.to_string())
}

fn rfc3339(at: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(at.as_millis())
        .map(|at| at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string())
        .unwrap_or_default()
}
