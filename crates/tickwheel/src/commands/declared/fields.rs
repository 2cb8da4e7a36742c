//! The differences between two schedules, field by field, and the request that turns one into the other. Pure.
//!
//! Only settings are compared, with every default filled in on both sides: a field that a file does not mention returns
//! to its default. The exception is `paused`: if a file does not mention it, it stays as it is.

use serde::Serialize;
use serde_json::{Map, Value};
use tickwheel_protocol::PlannedSchedule;

use crate::failure::CommandError;

/// What a file can say about a schedule, except its name and whether it is paused, in the order of the report.
const ORDERED: [&str; 15] = [
    "cron",
    "every",
    "anchor",
    "timezone",
    "start_at",
    "end_at",
    "exclude",
    "on_excluded",
    "jitter",
    "missed",
    "overlap",
    "dst_gap",
    "dst_fold",
    "day_logic",
    "job",
];
const PAUSED: &str = "paused";
/// In a change, `null` does not remove these: setting the other rule does.
const RULE: [&str; 3] = ["cron", "every", "anchor"];

/// A field whose value changes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FieldChange {
    /// The field, with dots between the levels.
    pub path: String,
    /// The value before. `null` if there is none.
    pub before: Value,
    /// The value afterwards.
    pub after: Value,
}

/// The difference between a schedule and its declaration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Difference {
    /// Every field that changes.
    pub fields: Vec<FieldChange>,
    /// The body of the request that changes them.
    pub patch: Map<String, Value>,
}

/// Whether a file says if the schedule is paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paused {
    /// It does.
    Declared,
    /// It does not, so the schedule stays as it is.
    LeftAlone,
}

/// The difference between `before` and `after`.
pub fn difference(
    before: &PlannedSchedule,
    after: &PlannedSchedule,
    paused: Paused,
) -> Result<Difference, CommandError> {
    let json = |schedule| serde_json::to_value(schedule).map_err(anyhow::Error::from);
    let (before, after) = (json(before)?, json(after)?);
    let mut difference = Difference::default();
    let compared = ORDERED.into_iter().chain((paused == Paused::Declared).then_some(PAUSED));
    for field in compared {
        let told = difference.fields.len();
        compare(field, &before[field], &after[field], &mut difference.fields);
        let has_changed = difference.fields.len() > told;
        if has_changed && !(RULE.contains(&field) && after[field].is_null()) {
            difference.patch.insert(field.into(), after[field].clone());
        }
    }
    Ok(difference)
}

/// Compares objects member by member. A missing member equals `null`.
pub fn compare(path: &str, before: &Value, after: &Value, found: &mut Vec<FieldChange>) {
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            let added = new.keys().filter(|name| !old.contains_key(*name));
            for name in old.keys().chain(added) {
                let member = |object: &Map<String, Value>| object.get(name).cloned().unwrap_or_default();
                compare(&format!("{path}.{name}"), &member(old), &member(new), found);
            }
        }
        (before, after) if before == after => {}
        (before, after) => {
            found.push(FieldChange { path: path.into(), before: before.clone(), after: after.clone() });
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn planned(fields: Value) -> PlannedSchedule {
        let mut schedule = json!({
            "name": "s", "cron": "0 2 * * *", "every": null, "anchor": null, "timezone": "UTC", "description": "d",
            "next_fire_at": null, "never": false, "paused": false,
            "job": {"type": "t", "target": {"worker": {}}, "payload": {"a": 1, "b": {"c": 2}}},
            "missed": {"policy": "fire_once", "window": "1d", "max_backfill": 100}, "overlap": "allow",
            "dst_gap": "run_after", "dst_fold": "once", "day_logic": "or", "start_at": null, "end_at": null,
            "jitter": "0s", "exclude": [], "on_excluded": "skip",
        });
        for (name, value) in fields.as_object().expect("fields") {
            schedule[name] = value.clone();
        }
        serde_json::from_value(schedule).expect("a schedule")
    }

    fn changed(before: Value, after: Value, paused: Paused) -> (Vec<String>, Value) {
        let difference = difference(&planned(before), &planned(after), paused).expect("comparable");
        let paths = difference.fields.into_iter().map(|field| field.path).collect();
        (paths, Value::Object(difference.patch))
    }

    #[test]
    fn what_is_only_progress_is_no_difference() {
        let progress = json!({"description": "x", "next_fire_at": "2027-01-01T00:00:00Z", "never": true});
        assert_eq!(changed(json!({}), progress, Paused::Declared), (vec![], json!({})));
    }

    #[test]
    fn the_request_has_what_changed_and_nothing_else() {
        let (paths, patch) = changed(
            json!({"end_at": "2030-01-01T00:00:00Z", "jitter": "300s"}),
            json!({"cron": "@daily", "missed": {"policy": "skip", "window": "1d", "max_backfill": 100}}),
            Paused::LeftAlone,
        );
        assert_eq!(paths, ["cron", "end_at", "jitter", "missed.policy"]);
        let missed = json!({"policy": "skip", "window": "1d", "max_backfill": 100});
        assert_eq!(patch, json!({"cron": "@daily", "end_at": null, "jitter": "0s", "missed": missed}));
    }

    #[test]
    fn the_job_is_told_by_its_fields_and_sent_as_a_whole() {
        let job =
            json!({"type": "t", "target": {"worker": {}}, "payload": {"b": {"c": 3}, "a": 1}, "queue": "q"});
        let (paths, patch) = changed(json!({}), json!({"job": job}), Paused::LeftAlone);
        assert_eq!(paths, ["job.payload.b.c", "job.queue"]);
        assert_eq!(patch, json!({"job": job}));
    }

    #[test]
    fn one_rule_takes_the_place_of_the_other() {
        let every = json!({"cron": null, "every": "300s", "anchor": "1970-01-01T00:00:00.000Z"});
        let (paths, patch) = changed(json!({}), every.clone(), Paused::LeftAlone);
        assert_eq!(paths, ["cron", "every", "anchor"]);
        assert_eq!(patch, json!({"every": "300s", "anchor": "1970-01-01T00:00:00.000Z"}));
        let (paths, patch) = changed(every, json!({}), Paused::LeftAlone);
        assert_eq!((paths.len(), patch), (3, json!({"cron": "0 2 * * *"})));
    }

    #[test]
    fn a_pause_is_touched_only_by_a_file_that_speaks_of_it() {
        let paused = json!({"paused": true});
        assert_eq!(changed(paused.clone(), json!({}), Paused::LeftAlone), (vec![], json!({})));
        let resumed = changed(paused, json!({}), Paused::Declared);
        assert_eq!(resumed, (vec!["paused".to_owned()], json!({"paused": false})));
    }
}
