//! What applying files would do. The server is asked, and nothing changes.
//!
//! The server checks every entry before anything is decided, and all mistakes are reported together. What the server
//! cannot know yet (calendars that the same files change) is taken into account here.

use std::collections::{HashMap, HashSet};

use serde::Serialize;
use serde_json::{Map, Value};
use tickwheel_protocol::workflow::SCHEDULE_PREFIX;
use tickwheel_protocol::{LocalTime, NextFire, OnExcluded, PlannedSchedule, Schedule, SchedulePreview};

use super::calendars::{self, CalendarPlan};
use super::fields::{FieldChange, Paused, difference};
use super::files::{Declared, Entry};
use super::firings::{FiringChange, Horizon, KNOWN_MAX, Side, compare};
use super::refusals::{Refusals, found};
use super::workflows::{self, WorkflowPlan};
use crate::commands::CommandContext;
use crate::commands::paging::Listing;
use crate::failure::CommandError;

/// What is done with something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// It does not exist yet.
    Create,
    /// It exists and differs.
    Change,
    /// It is as declared.
    Keep,
    /// It exists and is not declared.
    Delete,
}

/// The changes to a schedule.
#[derive(Debug, Serialize)]
pub struct SchedulePlan {
    /// Its name.
    pub name: String,
    /// What is done with it.
    pub action: Action,
    /// When it will fire, in words.
    pub description: Option<String>,
    /// Every field that changes.
    pub fields: Vec<FieldChange>,
    /// The changes to its firings. `None` if neither the schedule nor a calendar that it uses changes.
    pub firings: Option<FiringChange>,
    /// Calendars that change and that it uses.
    pub calendars: Vec<String>,
    /// Its firings move off the days of those calendars; where to is not predicted.
    pub moves_off_excluded_days: bool,
    /// The request that makes the changes.
    #[serde(skip)]
    pub body: Map<String, Value>,
}

/// All changes.
#[derive(Debug, Serialize)]
pub struct Plan {
    /// The changes to calendars, which come first.
    pub calendars: Vec<CalendarPlan>,
    /// The changes to workflows, which may use calendars.
    pub workflows: Vec<WorkflowPlan>,
    /// The changes to schedules.
    pub schedules: Vec<SchedulePlan>,
}

impl Plan {
    /// Whether there is anything to do.
    pub fn changes(&self) -> bool {
        let kept = |action: Action| action == Action::Keep;
        !self.calendars.iter().all(|calendar| kept(calendar.action))
            || !self.workflows.iter().all(|workflow| kept(workflow.action))
            || !self.schedules.iter().all(|schedule| kept(schedule.action))
    }

    /// The workflows with this action.
    pub fn workflows_to(&self, action: Action) -> impl Iterator<Item = &WorkflowPlan> {
        self.workflows.iter().filter(move |workflow| workflow.action == action)
    }

    /// The schedules with this action.
    pub fn schedules_to(&self, action: Action) -> impl Iterator<Item = &SchedulePlan> {
        self.schedules.iter().filter(move |schedule| schedule.action == action)
    }
}

/// What to compare.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    /// How far ahead firings are compared.
    pub horizon: Horizon,
    /// Whether to delete what is not declared: schedules, and workflows if the files have a section for them.
    pub prune: bool,
}

/// Plans the changes.
pub async fn plan(declared: &Declared, scope: Scope, context: &CommandContext) -> Result<Plan, CommandError> {
    let mut refusals = Refusals::default();
    let mut calendars = calendars::plan(&declared.calendars, context, &mut refusals).await?;
    let planner = Planner { context, horizon: scope.horizon, changing: calendars::changing(&calendars) };
    let mut workflows =
        workflows::plan(&declared.workflows, &planner.changing, context, &mut refusals).await?;
    let mut schedules = Vec::new();
    for entry in &declared.schedules {
        let planned = planner.declared(entry).await;
        schedules.extend(refusals.keep(entry, planned)?);
    }
    refusals.none()?;
    if scope.prune && declared.speaks_of_workflows {
        workflows.extend(workflows::undeclared(&declared.workflows, context).await?);
    }
    if scope.prune || !planner.changing.is_empty() {
        let of_workflows = declared.workflows.iter().map(|entry| workflows::schedule_of(&entry.name));
        let names = declared.schedules.iter().map(|entry| entry.name.clone()).chain(of_workflows);
        let others = planner.others(&names.collect()).await?;
        if scope.prune {
            // The schedule of a workflow is part of that, and goes with it only.
            for schedule in others.into_iter().filter(|other| !other.name.starts_with(SCHEDULE_PREFIX)) {
                schedules.push(planner.deleted(schedule).await?);
            }
        } else {
            calendars::note_users(&mut calendars, &others);
        }
    }
    Ok(Plan { calendars, workflows, schedules })
}

struct Planner<'a> {
    context: &'a CommandContext,
    horizon: Horizon,
    /// The calendars that change, as they will be.
    changing: HashMap<String, tickwheel_protocol::Calendar>,
}

impl Planner<'_> {
    async fn declared(&self, entry: &Entry) -> Result<SchedulePlan, CommandError> {
        let preview = self.preview(entry).await?;
        let call = self.context.client.get(&["schedules", &entry.name]);
        // A path also takes ids, and a name may look like one.
        let existing = found::<Schedule>(call.send().await)?.filter(|there| there.name == entry.name);
        match existing {
            Some(existing) => self.changed(entry, preview, existing).await,
            None => Ok(self.created(entry, preview)),
        }
    }

    /// Leaves out the calendars that change, because the server may not have them yet.
    async fn preview(&self, entry: &Entry) -> Result<SchedulePreview, CommandError> {
        let mut body = entry.body.clone();
        if let Some(Value::Array(exclude)) = body.get_mut("exclude") {
            exclude.retain(|days| self.changing_calendar(days.as_str().unwrap_or_default()).is_none());
        }
        let call = self.context.client.post(&["schedules", "preview"]);
        let call = call
            .query("count", Some(&KNOWN_MAX.to_string()))
            .query("after", Some(&self.horizon.after.to_string()));
        let mut preview: SchedulePreview = call.json(&body)?.send().await?.read()?;
        if let Some(Value::Array(exclude)) = entry.body.get("exclude") {
            preview.schedule.exclude =
                exclude.iter().filter_map(|days| days.as_str().map(str::to_owned)).collect();
        }
        Ok(preview)
    }

    fn changing_calendar(&self, days: &str) -> Option<&tickwheel_protocol::Calendar> {
        self.changing.get(days.strip_prefix("calendar:")?)
    }

    fn created(&self, entry: &Entry, preview: SchedulePreview) -> SchedulePlan {
        let new = self.new_side(&preview.schedule, preview.next, preview.schedule.paused);
        SchedulePlan {
            action: Action::Create,
            firings: Some(compare(&Side::default(), &new, self.horizon)),
            body: entry.body.clone(),
            ..self.kept(&preview.schedule)
        }
    }

    async fn changed(
        &self,
        entry: &Entry,
        preview: SchedulePreview,
        existing: Schedule,
    ) -> Result<SchedulePlan, CommandError> {
        let planned = preview.schedule;
        let (speaks_of_it, paused) = match entry.body.get("paused").is_some_and(|paused| !paused.is_null()) {
            true => (Paused::Declared, planned.paused),
            false => (Paused::LeftAlone, existing.paused),
        };
        let was_paused = existing.paused;
        let difference = difference(&existing.into(), &planned, speaks_of_it)?;
        let kept = self.kept(&planned);
        if difference.fields.is_empty() && kept.calendars.is_empty() {
            return Ok(kept);
        }
        let old = self.old_side(&entry.name, was_paused).await?;
        let new = self.new_side(&planned, preview.next, paused);
        let action = if difference.fields.is_empty() { Action::Keep } else { Action::Change };
        let firings = Some(compare(&old, &new, self.horizon));
        Ok(SchedulePlan { action, fields: difference.fields, body: difference.patch, firings, ..kept })
    }

    async fn deleted(&self, existing: Schedule) -> Result<SchedulePlan, CommandError> {
        let old = self.old_side(&existing.name, existing.paused).await?;
        let firings = Some(compare(&old, &Side::default(), self.horizon));
        Ok(SchedulePlan { action: Action::Delete, description: None, firings, ..self.kept(&existing.into()) })
    }

    fn kept(&self, planned: &PlannedSchedule) -> SchedulePlan {
        let changing = planned.exclude.iter().filter_map(|days| self.changing_calendar(days));
        let calendars: Vec<_> = changing.map(|calendar| calendar.name.clone()).collect();
        SchedulePlan {
            name: planned.name.clone(),
            action: Action::Keep,
            description: Some(format!("{}, {}", planned.description, planned.timezone)),
            fields: Vec::new(),
            firings: None,
            moves_off_excluded_days: !calendars.is_empty() && planned.on_excluded == OnExcluded::NextDay,
            calendars,
            body: Map::new(),
        }
    }

    fn new_side(&self, planned: &PlannedSchedule, next: Vec<LocalTime>, paused: bool) -> Side {
        if paused {
            return Side::default();
        }
        let mut side = Side::of(next);
        for calendar in planned.exclude.iter().filter_map(|days| self.changing_calendar(days)) {
            side.retain(|firing| !calendars::excludes(calendar, firing));
        }
        side
    }

    async fn old_side(&self, name: &str, paused: bool) -> Result<Side, CommandError> {
        if paused {
            return Ok(Side::default());
        }
        let call = self.context.client.get(&["schedules", name, "next"]);
        let call = call
            .query("count", Some(&KNOWN_MAX.to_string()))
            .query("after", Some(&self.horizon.after.to_string()));
        let next: tickwheel_protocol::List<NextFire> = call.send().await?.read()?;
        Ok(Side::of(next.items.into_iter().map(|fire| fire.local_time).collect()))
    }

    /// The schedules on the server that are not among `names`.
    async fn others(&self, names: &HashSet<String>) -> Result<Vec<Schedule>, CommandError> {
        let listing = Listing { path: &["schedules"], filters: &[], part: None };
        let mut schedules: Vec<Schedule> = listing.read(self.context).await?;
        schedules.retain(|schedule| !names.contains(&schedule.name));
        Ok(schedules)
    }
}
