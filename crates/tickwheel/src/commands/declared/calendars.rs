//! What applying files would do to calendars, and to the firings of schedules that use them.
//!
//! No call of the server checks a calendar without storing it, so it is checked here, by the server's rules.

use std::collections::{BTreeSet, HashMap};

use serde::Serialize;
use tickwheel_core::Timestamp;
use tickwheel_protocol::validate::Validate;
use tickwheel_protocol::{Calendar, Limits, LocalTime, Problem, PutCalendar, Schedule, Weekday, strict_json};

use super::files::Entry;
use super::plan::Action;
use super::refusals::{Refusals, found};
use crate::commands::CommandContext;
use crate::failure::CommandError;
use crate::output::now;

/// The changes to a calendar.
#[derive(Debug, Serialize)]
pub struct CalendarPlan {
    /// Its name.
    pub name: String,
    /// What is done with it.
    pub action: Action,
    /// Days and weekdays that become excluded.
    pub added: Vec<String>,
    /// Days and weekdays that are no longer excluded.
    pub removed: Vec<String>,
    /// Schedules that use it and are not in the files: their firings change too.
    pub also_used_by: Vec<String>,
    /// The calendar afterwards.
    #[serde(skip)]
    pub calendar: Calendar,
    /// The request that makes the changes.
    #[serde(skip)]
    pub request: PutCalendar,
}

/// Plans the changes for these entries.
pub async fn plan(
    entries: &[Entry],
    context: &CommandContext,
    refusals: &mut Refusals,
) -> Result<Vec<CalendarPlan>, CommandError> {
    let mut plans = Vec::new();
    for entry in entries {
        let planned = planned(entry, context).await;
        plans.extend(refusals.keep(entry, planned)?);
    }
    Ok(plans)
}

async fn planned(entry: &Entry, context: &CommandContext) -> Result<CalendarPlan, CommandError> {
    let (request, calendar) = requested(entry)?;
    let call = context.client.get(&["calendars", &entry.name]);
    let existing = found::<Calendar>(call.send().await)?;
    let before = existing.as_ref().map(excluded).unwrap_or_default();
    let after = excluded(&calendar);
    let only_in =
        |these: &BTreeSet<String>, those: &BTreeSet<String>| these.difference(those).cloned().collect();
    let action = match existing {
        None => Action::Create,
        Some(_) if before == after => Action::Keep,
        Some(_) => Action::Change,
    };
    Ok(CalendarPlan {
        name: entry.name.clone(),
        action,
        added: only_in(&after, &before),
        removed: only_in(&before, &after),
        also_used_by: Vec::new(),
        calendar,
        request,
    })
}

fn requested(entry: &Entry) -> Result<(PutCalendar, Calendar), CommandError> {
    let mut body = entry.body.clone();
    body.remove("name");
    let text = serde_json::to_vec(&body).map_err(anyhow::Error::from)?;
    let limits = Limits::default();
    let read = || -> Result<_, Problem> {
        let request: PutCalendar = strict_json::read(&text, limits.json_depth_max)?;
        request.validate(&limits)?;
        let calendar = tickwheel_api::preview_calendar(
            &entry.name,
            &request,
            Timestamp::from_millis(now().as_millis()),
        )?;
        Ok((request, calendar))
    };
    read().map_err(|problem| CommandError::Refused(Box::new(problem)))
}

/// Days and weekdays alike.
fn excluded(calendar: &Calendar) -> BTreeSet<String> {
    let weekdays = calendar.weekdays.iter().map(|weekday| format!("every {weekday}"));
    calendar.days.iter().cloned().chain(weekdays).collect()
}

/// The calendars that change, by name.
pub fn changing(plans: &[CalendarPlan]) -> HashMap<String, Calendar> {
    let changing = plans.iter().filter(|plan| plan.action != Action::Keep);
    changing.map(|plan| (plan.name.clone(), plan.calendar.clone())).collect()
}

/// Records which of these schedules use a calendar that changes.
pub fn note_users(plans: &mut [CalendarPlan], schedules: &[Schedule]) {
    for plan in plans.iter_mut().filter(|plan| plan.action != Action::Keep) {
        let reference = format!("calendar:{}", plan.name);
        let users = schedules.iter().filter(|schedule| schedule.exclude.contains(&reference));
        plan.also_used_by = users.map(|schedule| schedule.name.clone()).collect();
    }
}

/// Whether the local date of the firing is a day of the calendar.
pub fn excludes(calendar: &Calendar, firing: LocalTime) -> bool {
    let text = firing.to_string();
    let date = text.split('T').next().unwrap_or_default();
    let is_weekday = |weekday: &Weekday| {
        weekday.as_str().get(..3).is_some_and(|short| short.eq_ignore_ascii_case(firing.weekday()))
    };
    calendar.weekdays.iter().any(is_weekday)
        || calendar.days.binary_search_by(|day| day.as_str().cmp(date)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_firing_is_excluded_by_the_date_and_the_weekday_of_its_place() {
        let request =
            PutCalendar { days: vec!["2026-12-24/2026-12-26".into()], weekdays: vec![Weekday::Sunday] };
        let calendar = tickwheel_api::preview_calendar("off", &request, Timestamp::EPOCH).unwrap();
        let is_excluded = |firing: &str| excludes(&calendar, firing.parse().unwrap());
        assert!(is_excluded("2026-12-24T00:00:00+09:00"), "it is the 23rd in UTC");
        assert!(!is_excluded("2026-12-23T20:00:00-05:00"), "it is the 24th in UTC");
        assert!(is_excluded("2026-12-27T12:00:00Z"), "a Sunday");
        assert!(!is_excluded("2026-12-28T12:00:00Z"));
    }
}
