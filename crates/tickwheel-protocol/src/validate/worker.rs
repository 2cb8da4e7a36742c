//! The rules for what workers send.

use uuid::Uuid;

use super::{Rules, Validate};
use crate::attempt::{AskOnce, HeartbeatAttempt, OnceDone, ReportedError};
use crate::pointer;
use crate::problem::FieldCode;
use crate::worker::{
    AppendLogs, AttemptLines, AttemptReport, Label, Labels, PollWorker, RegisterWorker, ReportAttempts,
    ReportedLines, ReportedOutcome, WorkerHeartbeat,
};

/// Queues or types of a worker.
pub const NAMES_MAX: usize = 1_000;
/// Executors of a worker: each kind once.
pub const EXECUTORS_MAX: usize = 2;
/// Labels of a worker or of a job.
pub const LABELS_MAX: usize = 64;
/// Jobs that a worker runs at once.
pub const CAPACITY_MAX: u32 = 100_000;
/// Reports, or news about attempts, in a request.
pub const REPORTS_MAX: usize = 1_000;
/// Tokens in a heartbeat.
pub const TOKENS_MAX: usize = 100_000;
/// Lines of a log in a request, per attempt.
pub const LINES_MAX: usize = 10_000;
/// The largest number of a line.
pub const LINE_NUMBER_MAX: u64 = 1_000_000_000_000;
/// Bytes of what came of an effect.
pub const ONCE_RESULT_BYTES_MAX: usize = 64 << 10;
/// How long what came of an effect can be remembered, in seconds.
pub const ONCE_TTL_SECONDS_MAX: u64 = 90 * 24 * 3600;
/// The longest wait of a poll, in seconds.
pub const POLL_WAIT_SECONDS_MAX: u64 = 60;

impl Validate for RegisterWorker {
    fn check(&self, rules: &mut Rules<'_>) {
        rules.name("/name", Some(&self.name));
        rules.names("/queues", self.queues.as_deref());
        let executors = self.executors.as_ref();
        if executors.is_some_and(Vec::is_empty) {
            rules.broken("/executors", FieldCode::InvalidValue, "must not be empty");
        }
        if executors.is_some_and(|executors| executors.len() > EXECUTORS_MAX) {
            rules.too_many("/executors", EXECUTORS_MAX);
        }
        // One that has only executors needs no type.
        rules.names("/types", Some(&*self.types).filter(|types| !types.is_empty() || executors.is_none()));
        if self.capacity.is_some_and(|capacity| !(1..=CAPACITY_MAX).contains(&capacity)) {
            rules.broken("/capacity", FieldCode::OutOfRange, format!("must be from 1 to {CAPACITY_MAX}"));
        }
        rules.labels("/labels", self.labels.as_ref());
        rules.name("/library", self.library.as_deref());
        rules.name("/host", self.host.as_deref());
        if self.instance.as_deref().is_some_and(|instance| Uuid::try_parse(instance).is_err()) {
            rules.broken("/instance", FieldCode::InvalidValue, "must be a UUID");
        }
    }
}

impl Validate for PollWorker {
    fn check(&self, rules: &mut Rules<'_>) {
        rules.delay("/wait", self.wait, POLL_WAIT_SECONDS_MAX);
        let slots = self.slots.iter().flatten();
        if slots.clone().count() > NAMES_MAX {
            rules.too_many("/slots", NAMES_MAX);
            return;
        }
        for (job_type, _) in slots {
            let mut place = "/slots".to_owned();
            pointer::push_key(&mut place, job_type);
            rules.name(&place, Some(job_type));
        }
    }
}

impl Validate for WorkerHeartbeat {
    fn check(&self, rules: &mut Rules<'_>) {
        let attempts = self.attempts.as_deref().unwrap_or_default();
        if attempts.len() > REPORTS_MAX {
            rules.too_many("/attempts", REPORTS_MAX);
            return;
        }
        if self.tokens.as_ref().is_some_and(|tokens| tokens.len() > TOKENS_MAX) {
            rules.too_many("/tokens", TOKENS_MAX);
        }
        for (index, attempt) in attempts.iter().enumerate() {
            rules.within(&format!("/attempts/{index}"), |rules| rules.progress(attempt.progress));
        }
    }
}

/// Only what concerns the request as a whole: each report is checked, and answered, by itself.
impl Validate for ReportAttempts {
    fn check(&self, rules: &mut Rules<'_>) {
        if self.reports.len() > REPORTS_MAX {
            rules.too_many("/reports", REPORTS_MAX);
        }
    }
}

impl Validate for AttemptReport {
    fn check(&self, rules: &mut Rules<'_>) {
        rules.payload("/result", self.result.as_ref().map(|result| result.get()));
        if let Some(ReportedError::Coded(error)) = &self.error {
            rules.name("/error/code", error.code.as_deref());
            rules.name("/error/type", error.class.as_deref());
        }
        rules.delay("/delay", self.delay, rules.limits.retry_delay_seconds_max);
        if self.outcome == ReportedOutcome::Snoozed && self.delay.is_none() {
            rules.broken("/delay", FieldCode::InvalidValue, "a snoozed job needs a delay");
        }
        if let Some(logs) = &self.logs {
            rules.within("/logs", |rules| logs.check(rules));
        }
    }
}

impl Validate for ReportedLines {
    fn check(&self, rules: &mut Rules<'_>) {
        rules.lines(self.first, self.lines.len());
    }
}

/// Only what concerns the request as a whole: the lines of each attempt are checked, and answered, by themselves.
impl Validate for AppendLogs {
    fn check(&self, rules: &mut Rules<'_>) {
        if self.logs.len() > REPORTS_MAX {
            rules.too_many("/logs", REPORTS_MAX);
        }
    }
}

impl Validate for AttemptLines {
    fn check(&self, rules: &mut Rules<'_>) {
        rules.lines(self.first, self.lines.len());
    }
}

impl Validate for HeartbeatAttempt {
    fn check(&self, rules: &mut Rules<'_>) {
        rules.progress(self.progress);
    }
}

impl Validate for AskOnce {
    fn check(&self, rules: &mut Rules<'_>) {
        rules.delay("/ttl", self.ttl, ONCE_TTL_SECONDS_MAX);
        if self.ttl.is_some_and(|ttl| ttl.as_duration().is_zero()) {
            rules.broken("/ttl", FieldCode::OutOfRange, "must be longer than nothing");
        }
    }
}

impl Validate for OnceDone {
    fn check(&self, rules: &mut Rules<'_>) {
        rules.json_up_to("/result", self.result.as_ref().map(|result| result.get()), ONCE_RESULT_BYTES_MAX);
    }
}

impl Rules<'_> {
    fn lines(&mut self, first: u64, len: usize) {
        if first > LINE_NUMBER_MAX {
            self.broken(
                "/first",
                FieldCode::OutOfRange,
                format!("must not be larger than {LINE_NUMBER_MAX}"),
            );
        }
        if len > LINES_MAX {
            self.too_many("/lines", LINES_MAX);
        }
    }

    fn progress(&mut self, progress: Option<f64>) {
        if progress.is_some_and(|progress| !(0.0..=100.0).contains(&progress)) {
            self.broken("/progress", FieldCode::OutOfRange, "must be from 0 to 100");
        }
    }

    fn too_many(&mut self, pointer: &str, len_max: usize) {
        self.broken(pointer, FieldCode::TooMany, format!("must not have more than {len_max} entries"));
    }

    fn names(&mut self, pointer: &str, names: Option<&[String]>) {
        let Some(names) = names else { return };
        if names.is_empty() {
            return self.broken(pointer, FieldCode::InvalidValue, "must not be empty");
        }
        if names.len() > NAMES_MAX {
            return self.too_many(pointer, NAMES_MAX);
        }
        for (index, name) in names.iter().enumerate() {
            let mut place = pointer.to_owned();
            pointer::push_index(&mut place, index);
            self.name(&place, Some(name));
        }
    }

    /// Labels of a worker, or what a job requires.
    pub(super) fn labels(&mut self, pointer: &str, labels: Option<&Labels>) {
        let Some(labels) = labels else { return };
        if labels.len() > LABELS_MAX {
            return self.too_many(pointer, LABELS_MAX);
        }
        for (name, label) in labels {
            let mut place = pointer.to_owned();
            pointer::push_key(&mut place, name);
            self.name(&place, Some(name));
            if let Label::Text(text) = label {
                self.name(&place, Some(text));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;

    fn errors(request: &impl Validate) -> Vec<String> {
        let problem = request.validate(&Limits::default()).err();
        problem.into_iter().flat_map(|problem| problem.errors).map(|error| error.pointer).collect()
    }

    fn register(json: &str) -> RegisterWorker {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_worker_needs_a_name_and_a_type() {
        assert!(errors(&register(r#"{"name":"w","types":["send"]}"#)).is_empty());
        let labels = r#"{"gpu":true,"memory":16,"zone":"eu-1"}"#;
        let full = format!(
            r#"{{"name":"w","types":["send"],"queues":["mail"],"capacity":20,"labels":{labels},
                "instance":"0190b9d0-0000-7000-8000-000000000000","lease":"30s"}}"#
        );
        assert!(errors(&register(&full)).is_empty());
        assert!(errors(&register(r#"{"name":"w","types":[],"executors":["http","process"]}"#)).is_empty());
        assert_eq!(errors(&register(r#"{"name":"w","types":["t"],"executors":[]}"#)), ["/executors"]);
        let bad = register(
            r#"{"name":"","types":[],"queues":[],"capacity":0,"labels":{"a":""},"instance":"x","host":""}"#,
        );
        let expected = ["/name", "/queues", "/types", "/capacity", "/labels/a", "/host", "/instance"];
        assert_eq!(errors(&bad), expected);
    }

    #[test]
    fn a_report_is_checked_by_itself() {
        let report = |json: &str| serde_json::from_str::<AttemptReport>(json).unwrap();
        assert!(errors(&report(r#"{"token":"t","outcome":"completed","result":1}"#)).is_empty());
        assert_eq!(errors(&report(r#"{"token":"t","outcome":"snoozed"}"#)), ["/delay"]);
        let coded = r#"{"token":"t","outcome":"failed","error":{"code":"","message":"m"}}"#;
        assert_eq!(errors(&report(coded)), ["/error/code"]);
    }

    #[test]
    fn lines_have_numbers_within_bounds_and_are_not_too_many() {
        let lines = |first: u64, len: usize| {
            let line =
                crate::worker::ReportedLine { age: None, level: None, message: String::new(), fields: None };
            AttemptLines { token: "t".into(), first, lines: vec![line; len] }
        };
        assert!(errors(&lines(LINE_NUMBER_MAX, LINES_MAX)).is_empty());
        assert_eq!(errors(&lines(LINE_NUMBER_MAX + 1, LINES_MAX + 1)), ["/first", "/lines"]);
        let logs = AppendLogs { logs: vec![lines(0, 0); REPORTS_MAX + 1] };
        assert_eq!(errors(&logs), ["/logs"]);
    }

    #[test]
    fn what_came_of_an_effect_has_a_size_and_a_time() {
        let done = |len: usize| OnceDone {
            result: Some(serde_json::value::to_raw_value(&"x".repeat(len)).unwrap()),
            scope: None,
        };
        assert!(done(ONCE_RESULT_BYTES_MAX - 2).validate(&Limits::default()).is_ok());
        let refused = done(ONCE_RESULT_BYTES_MAX - 1).validate(&Limits::default()).unwrap_err();
        assert_eq!((refused.status, refused.errors[0].pointer.as_str()), (413, "/result"));
        let ask = |ttl: &str| serde_json::from_str::<AskOnce>(&format!(r#"{{"ttl":"{ttl}"}}"#)).unwrap();
        assert!(errors(&ask("90d")).is_empty());
        assert_eq!(errors(&ask("91d")), ["/ttl"]);
        assert_eq!(errors(&ask("0s")), ["/ttl"]);
    }

    #[test]
    fn progress_is_a_percentage() {
        let news = |progress| {
            let json = format!(r#"{{"attempts":[{{"token":"t","progress":{progress}}}]}}"#);
            serde_json::from_str::<WorkerHeartbeat>(&json).unwrap()
        };
        assert!(errors(&news("0")).is_empty() && errors(&news("99.5")).is_empty());
        assert_eq!(errors(&news("100.5")), ["/attempts/0/progress"]);
    }
}
