//! Requests about schedules into the core's terms. What needs the language of cron, zones and days is checked here, all
//! of it together.

use tickwheel_core::job::DEFAULT_TENANT;
use tickwheel_core::ports::{Idempotency, Trigger};
use tickwheel_core::schedule::{BadTimetable, Exclusion, MissedRule, Rule, Schedule, ScheduleSpec, plan};
use tickwheel_core::{JobId, Partition, ScheduleId, Timestamp};
use tickwheel_protocol::problem::FieldCode;
use tickwheel_protocol::{self as wire, Code, FieldError, Missed, PatchSchedule, Problem, SubmitSchedule};

use super::cron::{cron_expression, field, interval, no_recurrence, zone};
use super::job_request::{fingerprint, job_template, new_uuid};
use super::{payload, timestamp, words};

/// The requested schedule.
pub fn new_schedule(request: SubmitSchedule, now: Timestamp) -> Result<Schedule, Problem> {
    if request.cron.is_none() && request.every.is_none() {
        return Err(no_recurrence());
    }
    let (name, paused) = (request.name.as_str().into(), request.paused.unwrap_or(false));
    let (job, fields) = taken_apart(request);
    let spec = patched(&ScheduleSpec::new(NO_RULE, job_template(job)), fields)?;
    let timetable = spec.timetable().map_err(unreadable)?;
    let id = ScheduleId::from_uuid(new_uuid(now));
    Ok(Schedule {
        id,
        partition: Partition::of(JobId::from_uuid(id.as_uuid())),
        tenant: DEFAULT_TENANT.into(),
        name,
        progress: plan::begin(id, &spec, &timetable, now),
        spec: spec.into(),
        paused,
        pause_note: None,
        revision: 1,
        created_at: now,
        updated_at: now,
    })
}

fn unreadable(error: BadTimetable) -> Problem {
    Problem::new(Code::Internal, error.to_string())
}

/// A new schedule is the defaults, changed by what was said.
fn taken_apart(request: SubmitSchedule) -> (wire::SubmitJob, PatchSchedule) {
    let fields = PatchSchedule {
        cron: request.cron,
        every: request.every,
        anchor: request.anchor,
        timezone: request.timezone,
        job: None,
        missed: request.missed,
        overlap: request.overlap,
        dst_gap: request.dst_gap,
        dst_fold: request.dst_fold,
        day_logic: request.day_logic,
        start_at: request.start_at.map(Some),
        end_at: request.end_at.map(Some),
        jitter: request.jitter,
        exclude: request.exclude,
        on_excluded: request.on_excluded,
        paused: None,
    };
    (request.job, fields)
}

/// A rule that stands for none, and is always replaced.
const NO_RULE: Rule = Rule::Every { every_ms: 0, anchor: Timestamp::EPOCH };

/// The spec after the change; what is left out stays.
pub fn patched(before: &ScheduleSpec, patch: PatchSchedule) -> Result<ScheduleSpec, Problem> {
    let mut errors = Vec::new();
    let mut keep = |fault: Result<(), FieldError>| errors.extend(fault.err());
    let mut spec = before.clone();
    keep(change_rule(&mut spec.rule, &patch));
    keep(change_zone(&mut spec.timezone, patch.timezone.as_deref()));
    for (index, text) in patch.exclude.iter().flatten().enumerate() {
        keep(exclusion(index, text).map(drop));
    }
    spec.start_at = patch.start_at.map_or(spec.start_at, |at| at.map(timestamp));
    spec.end_at = patch.end_at.map_or(spec.end_at, |at| at.map(timestamp));
    if spec.start_at.zip(spec.end_at).is_some_and(|(start, end)| end < start) {
        keep(Err(field("/end_at", FieldCode::Conflict, "must not be before start_at")));
    }
    if !errors.is_empty() {
        return Err(Problem::invalid(errors));
    }
    if let Some(exclude) = &patch.exclude {
        spec.exclude = exclude.iter().filter_map(|text| text.parse().ok()).collect();
    }
    change_policies(&mut spec, &patch);
    if let Some(job) = patch.job {
        spec.job = job_template(job);
    }
    Ok(spec)
}

fn change_rule(rule: &mut Rule, patch: &PatchSchedule) -> Result<(), FieldError> {
    let anchor = patch.anchor.map(timestamp);
    *rule = match (&patch.cron, patch.every, &*rule) {
        (Some(text), _, _) => {
            cron_expression(text)?;
            Rule::Cron(text.clone())
        }
        (None, Some(every), before) => {
            let anchor = anchor.unwrap_or(match before {
                Rule::Every { anchor, .. } => *anchor,
                Rule::Cron(_) => Timestamp::EPOCH,
            });
            interval(every, anchor)?;
            Rule::Every { every_ms: every.as_millis(), anchor }
        }
        (None, None, Rule::Every { every_ms, anchor: before }) => {
            Rule::Every { every_ms: *every_ms, anchor: anchor.unwrap_or(*before) }
        }
        (None, None, Rule::Cron(_)) if anchor.is_some() => {
            return Err(field(
                "/anchor",
                FieldCode::Conflict,
                "is for every and cannot be given together with cron",
            ));
        }
        (None, None, Rule::Cron(_)) => return Ok(()),
    };
    Ok(())
}

fn change_zone(timezone: &mut String, name: Option<&str>) -> Result<(), FieldError> {
    if let Some(name) = name {
        *timezone = zone(name)?.name().into();
    }
    Ok(())
}

fn exclusion(index: usize, text: &str) -> Result<Exclusion, FieldError> {
    text.parse().map_err(|error: tickwheel_core::schedule::calendar::NoDays| {
        field(&format!("/exclude/{index}"), FieldCode::InvalidValue, error.to_string())
    })
}

fn change_policies(spec: &mut ScheduleSpec, patch: &PatchSchedule) {
    spec.dst_gap = patch.dst_gap.map_or(spec.dst_gap, words::gap);
    spec.dst_fold = patch.dst_fold.map_or(spec.dst_fold, words::fold);
    spec.day_logic = patch.day_logic.map_or(spec.day_logic, words::day_logic);
    spec.overlap = patch.overlap.map_or(spec.overlap, words::overlap);
    spec.on_excluded = patch.on_excluded.map_or(spec.on_excluded, words::on_excluded);
    spec.jitter_ms = patch.jitter.map_or(spec.jitter_ms, wire::Span::as_millis);
    let Missed { policy, window, max_backfill } = patch.missed.unwrap_or_default();
    spec.missed = MissedRule {
        policy: policy.map_or(spec.missed.policy, words::missed_policy),
        window_ms: window.map_or(spec.missed.window_ms, wire::Span::as_millis),
        max_backfill: max_backfill.unwrap_or(spec.missed.max_backfill),
    };
}

/// A job that somebody wants now. A key stands for the schedule as well as for the payload: used for another one it is
/// a conflict.
pub fn trigger(
    id: ScheduleId,
    request: &wire::TriggerSchedule,
    now: Timestamp,
) -> serde_json::Result<Trigger> {
    let text = serde_json::to_string(&Fingerprinted { trigger: id.to_string(), request })?;
    let idempotency =
        request.idempotency_key.clone().map(|key| Idempotency { key, fingerprint: fingerprint(&text) });
    Ok(Trigger {
        job_id: JobId::from_uuid(new_uuid(now)),
        payload: request.payload.as_deref().map(payload),
        idempotency,
    })
}

#[derive(serde::Serialize)]
struct Fingerprinted<'a> {
    trigger: String,
    #[serde(flatten)]
    request: &'a wire::TriggerSchedule,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tickwheel_core::schedule::{
        DEFAULT_MAX_BACKFILL, DEFAULT_WINDOW_MS, DstFold, DstGap, MAX_BACKFILL_MAX, MissedPolicy, OnExcluded,
        Overlap,
    };
    use tickwheel_protocol::cron::TIMEZONE_DEFAULT;
    use tickwheel_protocol::schedule::BACKFILL_RANGE;

    use super::*;

    /// 2027-01-15T08:00:00Z.
    const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

    fn requested(fields: Value) -> Schedule {
        let mut request = json!({"name": "s", "cron": "0 2 * * *", "job": {"type": "t"}});
        for (name, value) in fields.as_object().expect("fields") {
            request[name] = value.clone();
        }
        new_schedule(serde_json::from_value(request).expect("a request"), NOW).expect("a good request")
    }

    fn changed(schedule: &Schedule, patch: Value) -> Result<ScheduleSpec, Problem> {
        patched(&schedule.spec, serde_json::from_value(patch).expect("a patch"))
    }

    #[test]
    fn what_is_left_out_has_the_default_of_the_core() {
        let schedule = requested(json!({}));
        let spec = &schedule.spec;
        assert_eq!((spec.timezone.as_str(), spec.jitter_ms, spec.exclude.len()), (TIMEZONE_DEFAULT, 0, 0));
        assert_eq!((spec.dst_gap, spec.dst_fold), (DstGap::RunAfter, DstFold::Once));
        assert_eq!((spec.overlap, spec.on_excluded), (Overlap::Allow, OnExcluded::Skip));
        assert_eq!(spec.missed.policy, MissedPolicy::FireOnce);
        assert_eq!(
            (spec.missed.window_ms, spec.missed.max_backfill),
            (DEFAULT_WINDOW_MS, DEFAULT_MAX_BACKFILL)
        );
        assert_eq!((schedule.paused, schedule.revision), (false, 1));
        assert_eq!(schedule.progress.next_at, Some(Timestamp::from_millis(1_800_064_800_000)));
    }

    #[test]
    fn the_bounds_of_the_wire_are_those_of_the_core() {
        assert_eq!(*BACKFILL_RANGE.end(), MAX_BACKFILL_MAX);
        let days_max = tickwheel_core::schedule::calendar::CALENDAR_DAYS_MAX;
        assert_eq!(tickwheel_protocol::calendar::DAYS_MAX, days_max);
    }

    #[test]
    fn a_change_leaves_alone_what_it_does_not_name() {
        let before = requested(json!({"jitter": "5m", "missed": {"policy": "backfill"},
            "exclude": ["2026-12-25"], "end_at": "2030-01-01T00:00:00Z"}));
        let after = changed(&before, json!({"missed": {"window": "1h"}})).expect("a good change");
        let expected = MissedRule { window_ms: 3_600_000, ..before.spec.missed };
        assert_eq!(after, ScheduleSpec { missed: expected, ..(*before.spec).clone() });
        let endless = changed(&before, json!({"end_at": null})).expect("a good change");
        assert_eq!(endless, ScheduleSpec { end_at: None, ..(*before.spec).clone() });
        assert_eq!(changed(&before, json!({})), Ok((*before.spec).clone()));
    }

    #[test]
    fn an_expression_becomes_an_interval_and_back_by_naming_the_other() {
        let cron = requested(json!({}));
        let every = changed(&cron, json!({"every": "5m"})).expect("an interval");
        assert_eq!(every.rule, Rule::Every { every_ms: 300_000, anchor: Timestamp::EPOCH });
        let every = Schedule { spec: every.into(), ..cron.clone() };
        let anchored = changed(&every, json!({"anchor": "1970-01-01T00:00:07Z"})).expect("an anchor");
        assert_eq!(anchored.rule, Rule::Every { every_ms: 300_000, anchor: Timestamp::from_millis(7_000) });
        assert_eq!(
            changed(&every, json!({"cron": "@daily"})).map(|s| s.rule),
            Ok(Rule::Cron("@daily".into()))
        );
        let pointers = |bad: Result<ScheduleSpec, Problem>| {
            bad.expect_err("bad").errors.into_iter().map(|error| error.pointer).collect::<Vec<_>>()
        };
        assert_eq!(pointers(changed(&cron, json!({"anchor": "1970-01-01T00:00:07Z"}))), ["/anchor"]);
        let start = changed(&cron, json!({"start_at": "2030-01-01T00:00:00Z"})).expect("a start");
        let started = Schedule { spec: start.into(), ..cron };
        assert_eq!(pointers(changed(&started, json!({"end_at": "2029-01-01T00:00:00Z"}))), ["/end_at"]);
    }

    #[test]
    fn a_key_of_a_trigger_stands_for_the_schedule_and_the_payload() {
        let print = |id: u128, json: Value| {
            let request = serde_json::from_value(json).expect("a trigger");
            let id = ScheduleId::from_uuid(uuid::Uuid::from_u128(id));
            trigger(id, &request, NOW).expect("writable").idempotency.expect("a key").fingerprint
        };
        let first = print(1, json!({"idempotency_key": "k", "payload": {"a": 1, "b": 2}}));
        assert_eq!(first, print(1, json!({"payload": {"b": 2, "a": 1}, "idempotency_key": "k"})));
        assert_ne!(first, print(1, json!({"idempotency_key": "k"})));
        assert_ne!(first, print(2, json!({"idempotency_key": "k", "payload": {"a": 1, "b": 2}})));
    }
}
