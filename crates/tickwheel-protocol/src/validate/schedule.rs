//! The rules for schedules and calendars that need no knowledge of expressions, zones and days.

use super::{Rules, Validate};
use crate::calendar::{DAYS_MAX, PutCalendar};
use crate::job::SubmitJob;
use crate::problem::FieldCode;
use crate::schedule::{
    BACKFILL_RANGE, EXCLUDE_MAX, JITTER_MAX, Missed, PatchSchedule, PauseSchedule, RESERVED_NAME,
    SubmitSchedule, TriggerSchedule, WINDOW_RANGE,
};
use crate::time::{Span, Time};
use crate::workflow::SCHEDULE_PREFIX;

impl Validate for SubmitSchedule {
    fn check(&self, rules: &mut Rules<'_>) {
        rules.name("/name", Some(&self.name));
        if self.name == RESERVED_NAME {
            rules.broken("/name", FieldCode::Reserved, "is reserved for a call; choose another name");
        }
        if self.name.starts_with(SCHEDULE_PREFIX) {
            let detail =
                format!("begins with {SCHEDULE_PREFIX:?}, which is reserved for the schedules of workflows");
            rules.broken("/name", FieldCode::Reserved, detail);
        }
        rules.recurrence(self.cron.as_deref(), self.every, self.anchor);
        rules.job_without_time(&self.job);
        rules.missed(self.missed);
        rules.ends_after_start(self.start_at, self.end_at);
        rules.jitter(self.jitter);
        rules.exclude(self.exclude.as_deref());
    }
}

impl Validate for PatchSchedule {
    fn check(&self, rules: &mut Rules<'_>) {
        rules.recurrence(self.cron.as_deref(), self.every, self.anchor);
        if let Some(job) = &self.job {
            rules.job_without_time(job);
        }
        rules.missed(self.missed);
        rules.ends_after_start(self.start_at.flatten(), self.end_at.flatten());
        rules.jitter(self.jitter);
        rules.exclude(self.exclude.as_deref());
    }
}

impl Validate for PauseSchedule {
    fn check(&self, rules: &mut Rules<'_>) {
        rules.name("/note", self.note.as_deref());
    }
}

impl Validate for TriggerSchedule {
    fn check(&self, rules: &mut Rules<'_>) {
        rules.payload("/payload", self.payload.as_ref().map(|payload| payload.get()));
        rules.name("/idempotency_key", self.idempotency_key.as_deref());
    }
}

impl Validate for PutCalendar {
    fn check(&self, rules: &mut Rules<'_>) {
        rules.at_most("/days", self.days.len(), DAYS_MAX);
    }
}

impl Rules<'_> {
    pub(super) fn recurrence(&mut self, cron: Option<&str>, every: Option<Span>, anchor: Option<Time>) {
        if cron.is_some() && every.is_some() {
            self.broken("/every", FieldCode::Conflict, "cannot be given together with cron");
        }
        if cron.is_some() && anchor.is_some() {
            self.broken(
                "/anchor",
                FieldCode::Conflict,
                "is for every and cannot be given together with cron",
            );
        }
    }

    /// The job of a schedule may not say when or whether it runs.
    fn job_without_time(&mut self, job: &SubmitJob) {
        self.within("/job", |rules| {
            rules.work(job);
            let has_parents = job.depends_on.as_ref().is_some_and(|parents| !parents.is_empty());
            for (is_given, pointer, why) in [
                (job.execute_at.is_some(), "/execute_at", "the schedule says when its jobs run"),
                (job.delay.is_some(), "/delay", "the schedule says when its jobs run"),
                (job.idempotency_key.is_some(), "/idempotency_key", "every firing makes a job of its own"),
                (has_parents, "/depends_on", "the job of a schedule cannot wait for other jobs"),
            ] {
                if is_given {
                    rules.broken(pointer, FieldCode::Conflict, format!("must be left out: {why}"));
                }
            }
        });
    }

    pub(super) fn missed(&mut self, missed: Option<Missed>) {
        let missed = missed.unwrap_or_default();
        if missed.window.is_some_and(|window| !WINDOW_RANGE.contains(&window)) {
            let (least, most) = (WINDOW_RANGE.start(), WINDOW_RANGE.end());
            self.broken("/missed/window", FieldCode::OutOfRange, format!("must be from {least} to {most}"));
        }
        if missed.max_backfill.is_some_and(|count| !BACKFILL_RANGE.contains(&count)) {
            let (least, most) = (BACKFILL_RANGE.start(), BACKFILL_RANGE.end());
            let detail = format!("must be from {least} to {most}");
            self.broken("/missed/max_backfill", FieldCode::OutOfRange, detail);
        }
    }

    pub(super) fn ends_after_start(&mut self, start_at: Option<Time>, end_at: Option<Time>) {
        if start_at.zip(end_at).is_some_and(|(start, end)| end < start) {
            self.broken("/end_at", FieldCode::Conflict, "must not be before start_at");
        }
    }

    pub(super) fn jitter(&mut self, jitter: Option<Span>) {
        if jitter.is_some_and(|jitter| jitter > JITTER_MAX) {
            let detail = format!("must not be longer than {JITTER_MAX}");
            self.broken("/jitter", FieldCode::OutOfRange, detail);
        }
    }

    pub(super) fn exclude(&mut self, exclude: Option<&[String]>) {
        self.at_most("/exclude", exclude.unwrap_or_default().len(), EXCLUDE_MAX);
    }

    pub(super) fn at_most(&mut self, pointer: &str, entries: usize, entries_max: usize) {
        if entries > entries_max {
            let detail = format!("must not have more than {entries_max} entries");
            self.broken(pointer, FieldCode::TooMany, detail);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::*;
    use crate::limits::Limits;
    use crate::strict_json;

    fn broken<T: Validate + DeserializeOwned>(request: &Value) -> Vec<(String, FieldCode)> {
        let text = request.to_string();
        let request: T = strict_json::read(text.as_bytes(), 64).expect(&text);
        match request.validate(&Limits::default()) {
            Ok(()) => Vec::new(),
            Err(problem) => problem.errors.into_iter().map(|e| (e.pointer, e.code)).collect(),
        }
    }

    /// A good schedule with these fields on top.
    fn schedule(fields: Value) -> Value {
        let mut schedule = json!({"name": "s", "cron": "@daily", "job": {"type": "t"}});
        for (name, value) in fields.as_object().expect("fields") {
            schedule[name] = value.clone();
        }
        schedule
    }

    #[test]
    fn the_example_of_the_documentation_is_valid() {
        let example = json!({ "name": "daily-report", "cron": "0 2 * * *",
            "timezone": "America/New_York", "job": {"type": "report"},
            "missed": {"policy": "fire_once", "window": "24h", "max_backfill": 100},
            "overlap": "allow",
            "dst_gap": "run_after", "dst_fold": "once", "day_logic": "or",
            "start_at": null, "end_at": null, "jitter": "0s", "exclude": [], "paused": false });
        assert_eq!(broken::<SubmitSchedule>(&example), []);
    }

    #[test]
    fn every_broken_rule_is_reported_with_its_place() {
        use FieldCode::*;
        let cases = [
            (json!({"name": ""}), "/name", InvalidValue),
            (json!({"name": "a\nb"}), "/name", InvalidValue),
            (json!({"name": "n".repeat(256)}), "/name", TooLong),
            (json!({"name": "workflow.etl"}), "/name", Reserved),
            (json!({"every": "5m"}), "/every", Conflict),
            (json!({"anchor": "2026-01-01T00:00:00Z"}), "/anchor", Conflict),
            (json!({"missed": {"window": 0}}), "/missed/window", OutOfRange),
            (json!({"missed": {"window": "367d"}}), "/missed/window", OutOfRange),
            (json!({"missed": {"max_backfill": 0}}), "/missed/max_backfill", OutOfRange),
            (json!({"missed": {"max_backfill": 1001}}), "/missed/max_backfill", OutOfRange),
            (json!({"jitter": "25h"}), "/jitter", OutOfRange),
            (json!({"exclude": vec!["2026-01-01"; 367]}), "/exclude", TooMany),
            (
                json!({"start_at": "2026-01-02T00:00:00Z", "end_at": "2026-01-01T00:00:00Z"}),
                "/end_at",
                Conflict,
            ),
            (json!({"job": {"type": ""}}), "/job/type", InvalidValue),
            (json!({"job": {"type": "t", "queue": ""}}), "/job/queue", InvalidValue),
            (json!({"job": {"type": "t", "delay": 1}}), "/job/delay", Conflict),
            (
                json!({"job": {"type": "t", "execute_at": "2026-01-01T00:00:00Z"}}),
                "/job/execute_at",
                Conflict,
            ),
            (json!({"job": {"type": "t", "idempotency_key": "k"}}), "/job/idempotency_key", Conflict),
            (json!({"job": {"type": "t", "depends_on": ["x"]}}), "/job/depends_on", Conflict),
            (json!({"job": {"type": "t", "retry": {"jitter": 2}}}), "/job/retry/jitter", OutOfRange),
        ];
        for (fields, pointer, code) in cases {
            assert_eq!(
                broken::<SubmitSchedule>(&schedule(fields.clone())),
                [(pointer.to_owned(), code)],
                "{pointer} {code:?}"
            );
            // The name cannot be changed, and there is no expression that the others could contradict.
            if !matches!(pointer, "/name" | "/every" | "/anchor") {
                assert_eq!(broken::<PatchSchedule>(&fields), [(pointer.to_owned(), code)]);
            }
        }
    }

    #[test]
    fn both_ends_of_every_range_are_allowed() {
        for fields in [
            json!({"missed": {"window": "1s", "max_backfill": 1}, "jitter": 0}),
            json!({"missed": {"window": "366d", "max_backfill": 1000}, "jitter": "24h"}),
            json!({"start_at": "2026-01-01T00:00:00Z", "end_at": "2026-01-01T00:00:00Z"}),
            json!({"job": {"type": "t", "depends_on": [], "delay": null}}),
        ] {
            assert_eq!(broken::<SubmitSchedule>(&schedule(fields.clone())), [], "{fields}");
        }
    }

    #[test]
    fn a_payload_that_is_too_large_is_found_inside_the_job_of_a_schedule() {
        let large = schedule(json!({"job": {"type": "t", "payload": "x".repeat(256 << 10)}}));
        let request: SubmitSchedule = serde_json::from_value(large).expect("well-formed");
        let problem = request.validate(&Limits::default()).expect_err("too large");
        assert_eq!((problem.status, problem.errors[0].pointer.as_str()), (413, "/job/payload"));
    }

    #[test]
    fn leaving_a_bound_out_of_a_change_is_not_the_same_as_taking_it_away() {
        let patch = |json: Value| serde_json::from_value::<PatchSchedule>(json).expect("a patch").end_at;
        assert_eq!(patch(json!({})), None);
        assert_eq!(patch(json!({"end_at": null})), Some(None));
        assert!(patch(json!({"end_at": "2026-01-01T00:00:00Z"})).flatten().is_some());
    }
}
