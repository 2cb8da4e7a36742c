//! What is sent to those who want to hear of jobs and runs: documents in the form of Standard Webhooks events.

use serde::Serialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::time::Time;

/// One event.
#[derive(Clone, Debug, Serialize)]
pub struct WebhookEvent<D> {
    /// What happened: `job.completed`, `workflow_run.failed`.
    #[serde(rename = "type")]
    pub event_type: String,
    /// When.
    pub timestamp: Time,
    /// To what.
    pub data: D,
}

/// A job that has ended.
#[derive(Clone, Debug, Serialize)]
pub struct JobEventData<'a> {
    /// Its id.
    pub id: Uuid,
    /// Its type.
    #[serde(rename = "type")]
    pub job_type: &'a str,
    /// How it ended.
    pub status: &'a str,
    /// Its queue.
    pub queue: &'a str,
    /// Whose it is.
    pub tenant: &'a str,
    /// The attempt that ended it.
    pub attempt: u32,
    /// When it was to run.
    pub execute_at: Time,
    /// When it ended.
    pub completed_at: Time,
    /// What its target answered, as it was written.
    pub result: Option<&'a RawValue>,
    /// Why it did not end well.
    pub error: Option<EventError<'a>>,
    /// Its labels.
    pub tags: &'a [String],
    /// What its submitter said about it, as it was written.
    pub metadata: &'a RawValue,
}

/// Why something did not end well.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct EventError<'a> {
    /// In one word.
    pub code: &'a str,
    /// In more of them.
    pub message: &'a str,
}

/// A run to which something happened.
#[derive(Clone, Debug, Serialize)]
pub struct RunEventData<'a> {
    /// Its id.
    pub id: Uuid,
    /// Of which workflow it is,
    pub workflow: &'a str,
    /// and of which version.
    pub version: u32,
    /// Whose it is.
    pub tenant: &'a str,
    /// How it stands.
    pub status: &'a str,
    /// When it began.
    pub created_at: Time,
    /// What it was given, as it was written.
    pub input: &'a RawValue,
    /// The tasks that the event is about, by name; not all if they are many.
    pub tasks: &'a [String],
    /// How many they are.
    pub tasks_count: usize,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_document_quotes_what_others_wrote_as_they_wrote_it() {
        let input: &RawValue = serde_json::from_str("{\"n\": 2.50}").unwrap();
        let tasks = ["load".to_owned()];
        let data = RunEventData {
            id: Uuid::nil(),
            workflow: "etl",
            version: 3,
            tenant: "acme",
            status: "failed",
            created_at: Time::from_millis(0),
            input,
            tasks: &tasks,
            tasks_count: 1,
        };
        let timestamp = Time::from_millis(1_796_137_200_042);
        let event = WebhookEvent { event_type: "workflow_run.failed".into(), timestamp, data };
        let text = serde_json::to_string(&event).unwrap();
        assert!(text.contains(r#""input":{"n": 2.50}"#), "{text}");
        let expected = json!({
            "type": "workflow_run.failed",
            "timestamp": "2026-12-01T15:00:00.042Z",
            "data": {
                "id": "00000000-0000-0000-0000-000000000000",
                "workflow": "etl",
                "version": 3,
                "tenant": "acme",
                "status": "failed",
                "created_at": "1970-01-01T00:00:00.000Z",
                "input": {"n": 2.5},
                "tasks": ["load"],
                "tasks_count": 1,
            },
        });
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), expected);
    }
}
