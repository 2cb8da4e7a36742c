//! A plan as a report: a sign and a name for each thing, its changes below, and a summary.

use serde_json::Value;
use tickwheel_protocol::LocalTime;

use super::calendars::CalendarPlan;
use super::fields::FieldChange;
use super::firings::{FiringChange, Move};
use super::plan::{Action, Plan, SchedulePlan};
use super::workflows::WorkflowPlan;
use crate::output::{Output, Tone, plain};

/// How many of a list are shown.
const SHOWN_MAX: usize = 5;
const VALUE_CHARS_MAX: usize = 120;

/// The whole plan.
pub fn report(plan: &Plan, output: &Output) -> String {
    let mut report = Report { lines: Vec::new(), output };
    for calendar in &plan.calendars {
        report.calendar(calendar);
    }
    for workflow in &plan.workflows {
        report.workflow(workflow);
    }
    for schedule in &plan.schedules {
        report.schedule(schedule);
    }
    report.lines.push(summary(plan));
    report.lines.join("\n")
}

struct Report<'a> {
    lines: Vec<String>,
    output: &'a Output,
}

impl Report<'_> {
    fn heading(&mut self, action: Action, name: &str, remark: &str) {
        let (sign, tone) = match action {
            Action::Create => ('+', Tone::Good),
            Action::Change => ('~', Tone::Held),
            Action::Keep => ('=', Tone::Quiet),
            Action::Delete => ('-', Tone::Bad),
        };
        let heading = tone.paint(self.output, &format!("{sign} {}", plain(name)));
        let remark = if remark.is_empty() { String::new() } else { format!("  {}", plain(remark)) };
        self.lines.push(format!("{heading}{remark}"));
    }

    fn detail(&mut self, tone: Tone, text: &str) {
        self.lines.push(format!("    {}", tone.paint(self.output, &plain(text))));
    }

    fn calendar(&mut self, calendar: &CalendarPlan) {
        let remark = match calendar.action {
            Action::Create => "new",
            Action::Keep => "unchanged",
            Action::Change | Action::Delete => "",
        };
        self.heading(calendar.action, &format!("calendar {}", calendar.name), remark);
        for (days, tone, sign) in [(&calendar.added, Tone::Good, '+'), (&calendar.removed, Tone::Bad, '-')] {
            if !days.is_empty() {
                self.detail(tone, &format!("{sign} {}", cut(days.iter().cloned(), days.len())));
            }
        }
        if !calendar.also_used_by.is_empty() {
            let users = calendar.also_used_by.join(", ");
            self.detail(Tone::Held, &format!("also changes firings of {users}, not in these files"));
        }
    }

    fn workflow(&mut self, workflow: &WorkflowPlan) {
        let version = workflow.version;
        let remark = match workflow.action {
            Action::Create if workflow.tasks_total == 1 => "new: 1 task".into(),
            Action::Create => format!("new: {} tasks", workflow.tasks_total),
            Action::Keep => "unchanged".into(),
            Action::Change if workflow.is_new_version => format!("version {} → {version}", version - 1),
            Action::Change => format!("version {version}, its schedule differs from the definition"),
            Action::Delete => "deleted, with its schedule; its runs stay".into(),
        };
        self.heading(workflow.action, &format!("workflow {}", workflow.name), &remark);
        for field in &workflow.fields {
            self.detail(Tone::Plain, &field_change(field));
        }
    }

    fn schedule(&mut self, schedule: &SchedulePlan) {
        let calendars = schedule.calendars.join(", ");
        let remark = match schedule.action {
            Action::Create => format!("new: {}", schedule.description.as_deref().unwrap_or_default()),
            Action::Change => String::new(),
            Action::Keep if calendars.is_empty() => "unchanged".into(),
            Action::Keep => format!("unchanged, but on a calendar that changes: {calendars}"),
            Action::Delete => "deleted, with its record of firings".into(),
        };
        self.heading(schedule.action, &schedule.name, &remark);
        for field in &schedule.fields {
            self.detail(Tone::Plain, &field_change(field));
        }
        if let Some(firings) = &schedule.firings {
            self.firings(schedule.action, firings);
        }
        if schedule.moves_off_excluded_days {
            let text = format!("firings on days of {calendars} move, and their new times are not shown");
            self.detail(Tone::Held, &text);
        }
    }

    fn firings(&mut self, action: Action, change: &FiringChange) {
        if change.is_none() {
            let text =
                if action == Action::Create { "never fires, or is paused" } else { "no firing changes" };
            return self.detail(Tone::Quiet, text);
        }
        let FiringChange { until, before, after, .. } = change;
        let until = until.to_string();
        let until = until.get(..16).unwrap_or(&until).replace('T', " ");
        self.detail(Tone::Plain, &format!("firings until {until} UTC: {before} → {after}"));
        if !change.moves.is_empty() {
            self.detail(Tone::Held, &format!("~ {} move", moves(&change.moves)));
        }
        for (firings, tone, sign, verb) in
            [(&change.vanish, Tone::Bad, '-', "vanish"), (&change.appear, Tone::Good, '+', "appear")]
        {
            if !firings.is_empty() {
                self.detail(tone, &format!("{sign} {} {verb}", times(firings)));
            }
        }
    }
}

fn summary(plan: &Plan) -> String {
    if !plan.changes() {
        return "nothing to change".into();
    }
    let count = |action: Action| {
        let calendars = plan.calendars.iter().filter(|calendar| calendar.action == action).count();
        calendars + plan.workflows_to(action).count() + plan.schedules_to(action).count()
    };
    let (create, change) = (count(Action::Create), count(Action::Change));
    let (delete, keep) = (count(Action::Delete), count(Action::Keep));
    format!("{create} to create, {change} to change, {delete} to delete, {keep} unchanged")
}

fn field_change(field: &FieldChange) -> String {
    format!("{}: {} → {}", field.path, value(&field.before), value(&field.after))
}

fn value(value: &Value) -> String {
    if value.is_null() {
        return "none".into();
    }
    let text = value.to_string();
    match text.char_indices().nth(VALUE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// The first few, and how many more there are.
fn cut(all: impl Iterator<Item = String>, count: usize) -> String {
    let shown = all.take(SHOWN_MAX).collect::<Vec<_>>().join(", ");
    if count > SHOWN_MAX { format!("{shown} and {} more", count - SHOWN_MAX) } else { shown }
}

/// Shows the date and the offset only where they differ from the previous ones.
fn times(firings: &[LocalTime]) -> String {
    let mut said = None;
    let each = firings.iter().map(|firing| {
        let (date, time, offset) = parts(*firing);
        let known = said.replace((date.clone(), offset.clone()));
        if known == Some((date.clone(), offset.clone())) { time } else { format!("{date} {time} {offset}") }
    });
    cut(each, firings.len())
}

fn moves(moves: &[Move]) -> String {
    let each = moves.iter().map(|moved| {
        let (from_date, from_time, from_offset) = parts(moved.from);
        let (date, time, offset) = parts(moved.to);
        let to = if date == from_date { time } else { format!("{date} {time}") };
        let to = if offset == from_offset { to } else { format!("{to} {offset}") };
        format!("{from_date} {from_time} {from_offset} → {to}")
    });
    cut(each, moves.len())
}

/// Date, time and offset. Seconds only if there are any.
fn parts(firing: LocalTime) -> (String, String, String) {
    let text = firing.to_string();
    let (date, rest) = text.split_once('T').unwrap_or((&text, ""));
    let (time, offset) = rest.split_at(rest.find(['+', '-']).unwrap_or(rest.len()));
    let time = if time.len() == 8 { time.strip_suffix(":00").unwrap_or(time) } else { time };
    (date.into(), time.into(), offset.into())
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};
    use tickwheel_protocol::Time;

    use super::*;

    fn at(text: &str) -> LocalTime {
        text.parse().unwrap()
    }

    fn schedule(name: &str, action: Action) -> SchedulePlan {
        SchedulePlan {
            name: name.into(),
            action,
            description: Some("at 02:00 every day, America/New_York".into()),
            fields: Vec::new(),
            firings: None,
            calendars: Vec::new(),
            moves_off_excluded_days: false,
            body: Map::new(),
        }
    }

    fn change(vanish: &[&str], appear: &[&str], moves: &[(&str, &str)]) -> Option<FiringChange> {
        Some(FiringChange {
            until: "2026-11-16T12:00:00Z".parse::<Time>().unwrap(),
            before: 288,
            after: 144,
            vanish: vanish.iter().map(|text| at(text)).collect(),
            appear: appear.iter().map(|text| at(text)).collect(),
            moves: moves.iter().map(|(from, to)| Move { from: at(from), to: at(to) }).collect(),
        })
    }

    fn told(schedules: Vec<SchedulePlan>) -> String {
        report(
            &Plan { calendars: Vec::new(), workflows: Vec::new(), schedules },
            &Output { json: false, color: false, width: None },
        )
    }

    #[test]
    fn every_schedule_is_told_with_a_sign_and_what_becomes_of_its_firings() {
        let vanish: Vec<_> = (5..12).map(|minute| format!("2026-11-15T12:{minute:02}:00Z")).collect();
        let vanish: Vec<&str> = vanish.iter().map(String::as_str).collect();
        let cron = FieldChange { path: "cron".into(), before: json!("*/5 * * * *"), after: Value::Null };
        let text = told(vec![
            SchedulePlan {
                firings: change(&[], &["2026-11-16T02:00:00-05:00", "2026-11-17T02:00:30-05:00"], &[]),
                ..schedule("daily-report", Action::Create)
            },
            SchedulePlan {
                fields: vec![cron],
                firings: change(&vanish, &[], &[]),
                ..schedule("cleanup", Action::Change)
            },
            SchedulePlan {
                firings: change(&[], &[], &[("2026-11-16T02:00:00Z", "2026-11-16T03:00:00+01:00")]),
                ..schedule("report", Action::Change)
            },
            schedule("weekly", Action::Keep),
            SchedulePlan { firings: change(&[], &[], &[]), ..schedule("old\u{1b}[2J", Action::Delete) },
        ]);
        let expected = "\
+ daily-report  new: at 02:00 every day, America/New_York
    firings until 2026-11-16 12:00 UTC: 288 → 144
    + 2026-11-16 02:00 -05:00, 2026-11-17 02:00:30 -05:00 appear
~ cleanup
    cron: \"*/5 * * * *\" → none
    firings until 2026-11-16 12:00 UTC: 288 → 144
    - 2026-11-15 12:05 +00:00, 12:06, 12:07, 12:08, 12:09 and 2 more vanish
~ report
    firings until 2026-11-16 12:00 UTC: 288 → 144
    ~ 2026-11-16 02:00 +00:00 → 03:00 +01:00 move
= weekly  unchanged
- old\u{fffd}[2J  deleted, with its record of firings
    no firing changes
1 to create, 2 to change, 1 to delete, 1 unchanged";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_plan_without_changes_says_so() {
        assert_eq!(told(vec![schedule("a", Action::Keep)]), "= a  unchanged\nnothing to change");
    }

    #[test]
    fn long_values_are_cut() {
        let long = value(&json!("é".repeat(500)));
        assert_eq!(long.chars().count(), VALUE_CHARS_MAX + 1);
    }
}
