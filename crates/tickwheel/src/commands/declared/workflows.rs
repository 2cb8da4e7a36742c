//! Workflows as files declare them, and what applying them would do. The server is asked, and nothing changes.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use serde::Serialize;
use serde_json::{Map, Value};
use tickwheel_client::Answer;
use tickwheel_protocol::workflow::{SCHEDULE_PREFIX, SubmitWorkflow, Workflow, WorkflowSummary};
use tickwheel_protocol::{
    Calendar, Limits, PlannedSchedule, Schedule, SchedulePreview, SubmitSchedule, WorkflowSchedule,
    strict_json,
};

use super::fields::{self, FieldChange, Paused, compare};
use super::files::{self, Entry};
use super::plan::Action;
use super::refusals::{Refusals, found};
use crate::commands::CommandContext;
use crate::commands::paging::Listing;
use crate::failure::CommandError;

/// The field of a definition with its schedule.
const SCHEDULE: &str = "schedule";

/// A workflow that a file declares. The server decides whether it is valid.
pub struct DeclaredWorkflow(Entry);

/// The workflows of files that declare nothing else.
pub fn read(paths: &[PathBuf]) -> Result<Vec<DeclaredWorkflow>, CommandError> {
    let declared = files::read(paths)?;
    if let Some(other) = declared.schedules.iter().chain(&declared.calendars).next() {
        return Err(CommandError::BadInput(format!(
            "{other} is not a workflow: use `tickwheel apply` for other kinds"
        )));
    }
    Ok(declared.workflows.into_iter().map(DeclaredWorkflow).collect())
}

impl DeclaredWorkflow {
    /// Its definition, if it has the form of one.
    pub fn definition(&self) -> Result<SubmitWorkflow, CommandError> {
        let text = serde_json::to_vec(&self.0.body).map_err(anyhow::Error::from)?;
        let read = strict_json::read(&text, Limits::default().json_depth_max);
        self.alone(read.map_err(|problem| CommandError::Refused(Box::new(problem))))
    }

    /// What storing it would do.
    pub async fn try_out(&self, context: &CommandContext) -> Result<Workflow, CommandError> {
        try_out(&self.0.body, context).await
    }

    /// Stores it.
    pub async fn store(&self, context: &CommandContext) -> Result<Answer, CommandError> {
        let answer = context.client.post(&["workflows"]).json(&self.0.body)?.send().await;
        self.alone(answer.map_err(CommandError::from))
    }

    /// The answer, or what is wrong with it and where.
    fn alone<T>(&self, outcome: Result<T, CommandError>) -> Result<T, CommandError> {
        let mut refusals = Refusals::default();
        match refusals.keep(&self.0, outcome)? {
            Some(value) => Ok(value),
            None => Err(refusals.none().expect_err("it was refused")),
        }
    }
}

/// What storing each of them would do. All mistakes are reported together.
pub async fn try_all(
    declared: &[DeclaredWorkflow],
    context: &CommandContext,
) -> Result<Vec<Workflow>, CommandError> {
    let mut refusals = Refusals::default();
    let mut tried = Vec::new();
    for workflow in declared {
        tried.extend(refusals.keep(&workflow.0, workflow.try_out(context).await)?);
    }
    refusals.none().map(|()| tried)
}

async fn try_out(body: &Map<String, Value>, context: &CommandContext) -> Result<Workflow, CommandError> {
    let call = context.client.post(&["workflows"]).query("dry_run", Some("true"));
    Ok(call.json(body)?.send().await?.read()?)
}

/// The changes to a workflow. For one that is deleted: its last version.
#[derive(Debug, Serialize)]
pub struct WorkflowPlan {
    /// Its name.
    pub name: String,
    /// What is done with it.
    pub action: Action,
    /// The version afterwards.
    pub version: u32,
    /// Whether that is a new version. If not, only its schedule differs from the definition.
    #[serde(skip)]
    pub is_new_version: bool,
    /// How many tasks it has afterwards, including those inside fan-outs.
    pub tasks_total: usize,
    /// Every field that changes.
    pub fields: Vec<FieldChange>,
    /// The request that makes the changes.
    #[serde(skip)]
    pub body: Map<String, Value>,
}

/// Plans the changes for these entries, while these calendars change.
pub async fn plan(
    entries: &[Entry],
    changing: &HashMap<String, Calendar>,
    context: &CommandContext,
    refusals: &mut Refusals,
) -> Result<Vec<WorkflowPlan>, CommandError> {
    let mut plans = Vec::new();
    for entry in entries {
        let planned = planned(entry, changing, context).await;
        plans.extend(refusals.keep(entry, planned)?);
    }
    Ok(plans)
}

async fn planned(
    entry: &Entry,
    changing: &HashMap<String, Calendar>,
    context: &CommandContext,
) -> Result<WorkflowPlan, CommandError> {
    let planned = preview(entry, changing, context).await?;
    let existing = found::<Workflow>(context.client.get(&["workflows", &entry.name]).send().await)?;
    let mut fields = match &existing {
        Some(existing) => difference(&existing.definition, &planned.definition)?,
        None => Vec::new(),
    };
    let is_another = !fields.is_empty();
    if existing.is_some() && !fields.iter().any(|field| field.path.starts_with(SCHEDULE)) {
        fields.extend(drift(entry, planned.definition.schedule.as_ref(), changing, context).await?);
    }
    let (action, version) = match existing {
        // Not 1 if there was one of that name before.
        None => (Action::Create, planned.version),
        Some(existing) if fields.is_empty() => (Action::Keep, existing.version),
        Some(existing) => (Action::Change, existing.version + u32::from(is_another)),
    };
    Ok(WorkflowPlan {
        name: entry.name.clone(),
        action,
        version,
        is_new_version: is_another,
        tasks_total: planned.tasks_total,
        fields,
        body: entry.body.clone(),
    })
}

/// The changes that somebody made to the schedule of a workflow whose definition is unchanged.
async fn drift(
    entry: &Entry,
    wanted: Option<&WorkflowSchedule>,
    changing: &HashMap<String, Calendar>,
    context: &CommandContext,
) -> Result<Vec<FieldChange>, CommandError> {
    let name = schedule_of(&entry.name);
    let existing = found::<Schedule>(context.client.get(&["schedules", &name]).send().await)?;
    let existing = existing.filter(|there| there.name == name);
    let whole = |before, after| FieldChange { path: SCHEDULE.into(), before, after };
    match (existing, wanted) {
        (None, None) => Ok(Vec::new()),
        (None, Some(wanted)) => {
            let wanted = serde_json::to_value(wanted).map_err(anyhow::Error::from)?;
            Ok(vec![whole(Value::Null, wanted)])
        }
        (Some(existing), None) => Ok(vec![whole(existing.name.into(), Value::Null)]),
        (Some(existing), Some(wanted)) => {
            let paused = if wanted.paused.is_some() { Paused::Declared } else { Paused::LeftAlone };
            let planned = preview_schedule(&entry.name, wanted, changing, context).await?;
            let difference = fields::difference(&existing.into(), &planned, paused)?;
            let inside =
                |field: FieldChange| FieldChange { path: format!("{SCHEDULE}.{}", field.path), ..field };
            Ok(difference.fields.into_iter().map(inside).collect())
        }
    }
}

/// The schedule of a workflow with every default filled in. The server gives it its name.
async fn preview_schedule(
    workflow: &str,
    wanted: &WorkflowSchedule,
    changing: &HashMap<String, Calendar>,
    context: &CommandContext,
) -> Result<PlannedSchedule, CommandError> {
    let declared = wanted.exclude.clone().unwrap_or_default();
    let mut schedule = SubmitSchedule { name: workflow.into(), ..wanted.clone().into_schedule(workflow) };
    // The server may not have the calendars yet that are going to change.
    let is_known = |days: &String| {
        !days.strip_prefix("calendar:").is_some_and(|calendar| changing.contains_key(calendar))
    };
    schedule.exclude = schedule.exclude.map(|exclude| exclude.into_iter().filter(is_known).collect());
    let call = context.client.post(&["schedules", "preview"]).query("count", Some("1"));
    let preview: SchedulePreview = call.json(&schedule)?.send().await?.read()?;
    Ok(PlannedSchedule { exclude: declared, ..preview.schedule })
}

/// The workflows on the server that are not among these.
pub async fn undeclared(
    entries: &[Entry],
    context: &CommandContext,
) -> Result<Vec<WorkflowPlan>, CommandError> {
    let declared: HashSet<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
    let listing = Listing { path: &["workflows"], filters: &[], part: None };
    let existing: Vec<WorkflowSummary> = listing.read(context).await?;
    let undeclared = existing.into_iter().filter(|workflow| !declared.contains(workflow.name.as_str()));
    Ok(undeclared.map(deleted).collect())
}

fn deleted(workflow: WorkflowSummary) -> WorkflowPlan {
    let WorkflowSummary { name, version, tasks_total, .. } = workflow;
    WorkflowPlan {
        name,
        action: Action::Delete,
        version,
        is_new_version: false,
        tasks_total,
        fields: Vec::new(),
        body: Map::new(),
    }
}

/// Leaves out the calendars that change, because the server may not have them yet.
async fn preview(
    entry: &Entry,
    changing: &HashMap<String, Calendar>,
    context: &CommandContext,
) -> Result<Workflow, CommandError> {
    let mut body = entry.body.clone();
    let is_known = |days: &Value| {
        let calendar = days.as_str().unwrap_or_default().strip_prefix("calendar:");
        !calendar.is_some_and(|name| changing.contains_key(name))
    };
    let mut declared = None;
    if let Some(Value::Array(exclude)) = body.get_mut("schedule").and_then(|s| s.get_mut("exclude")) {
        declared = Some(exclude.iter().filter_map(|days| days.as_str().map(str::to_owned)).collect());
        exclude.retain(is_known);
    }
    let mut planned = try_out(&body, context).await?;
    if let (Some(schedule), Some(declared)) = (&mut planned.definition.schedule, declared) {
        schedule.exclude = Some(declared);
    }
    Ok(planned)
}

/// The name of the schedule of a workflow.
pub fn schedule_of(workflow: &str) -> String {
    format!("{SCHEDULE_PREFIX}{workflow}")
}

/// Tasks are compared by name. If only their order differs, the difference is the order.
fn difference(before: &SubmitWorkflow, after: &SubmitWorkflow) -> Result<Vec<FieldChange>, CommandError> {
    let json = |definition| serde_json::to_value(definition).map_err(anyhow::Error::from);
    let (before, after) = (json(before)?, json(after)?);
    let mut changes = Vec::new();
    if before != after {
        compare_members(&by_name(before.clone()), &by_name(after.clone()), &mut changes);
        if changes.is_empty() {
            let order = |definition: &Value| names(&definition["tasks"]);
            let (before, after) = (order(&before), order(&after));
            changes.push(FieldChange { path: "order of the tasks".into(), before, after });
        }
    }
    Ok(changes)
}

fn compare_members(before: &Value, after: &Value, changes: &mut Vec<FieldChange>) {
    let members = |value: &Value| value.as_object().cloned().unwrap_or_default();
    let (before, after) = (members(before), members(after));
    let added = after.keys().filter(|name| !before.contains_key(*name));
    for name in before.keys().chain(added) {
        let member = |of: &Map<String, Value>| of.get(name).cloned().unwrap_or_default();
        compare(name, &member(&before), &member(&after), changes);
    }
}

fn names(tasks: &Value) -> Value {
    tasks.as_array().into_iter().flatten().map(|task| task["name"].clone()).collect()
}

/// The same, with every list of tasks as an object of tasks by name.
fn by_name(mut definition: Value) -> Value {
    for list in ["before", "tasks", "after"] {
        let Some(Value::Array(tasks)) = definition.get_mut(list).map(Value::take) else { continue };
        let named = tasks.into_iter().map(|task| {
            let name = task["name"].as_str().unwrap_or_default().to_owned();
            (name, by_name(task))
        });
        definition[list] = Value::Object(named.collect());
    }
    definition
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn changed(before: Value, after: Value) -> Vec<String> {
        let read = |value| serde_json::from_value::<SubmitWorkflow>(value).expect("a definition");
        let changes = difference(&read(before), &read(after)).expect("comparable");
        changes.into_iter().map(|change| change.path).collect()
    }

    #[test]
    fn a_change_is_told_by_the_task_it_is_in() {
        let etl = |extract: Value, more: Value| {
            let mut tasks = vec![json!({"name": "extract", "job": extract})];
            tasks.extend(more.as_array().expect("tasks").iter().cloned());
            json!({"name": "etl", "tasks": tasks})
        };
        let inner = |queue: &str| json!([{"name": "each", "for_each": "input", "tasks": [{"name": "load", "job": {"queue": queue}}]}]);
        let before = etl(json!({"payload": {"a": 1}}), inner("q"));
        let after = etl(json!({"payload": {"a": 2}}), inner("r"));
        assert_eq!(
            changed(before.clone(), after),
            ["tasks.each.tasks.load.job.queue", "tasks.extract.job.payload.a"]
        );
        let fewer = etl(json!({"payload": {"a": 1}}), json!([]));
        assert_eq!(changed(before.clone(), fewer), ["tasks.each"]);
        assert!(changed(before.clone(), before).is_empty());
    }

    #[test]
    fn another_order_of_the_tasks_is_a_change() {
        let etl = |names: [&str; 2]| {
            let tasks: Vec<Value> = names.iter().map(|name| json!({"name": name, "job": {}})).collect();
            json!({"name": "etl", "tasks": tasks})
        };
        assert_eq!(changed(etl(["a", "b"]), etl(["b", "a"])), ["order of the tasks"]);
    }
}
