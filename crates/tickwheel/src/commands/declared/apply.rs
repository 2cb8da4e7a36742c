//! `tickwheel apply`: shows the changes, asks, and makes them.
//!
//! Kept true: nothing changes before every entry has been checked and the user has agreed. Calendars come first,
//! because the others refer to them. Then come workflows, which schedules may start. Deletions come last, workflows
//! after the schedules that start them. It is not one transaction: if it stops on the way, the report lists what was
//! done and what was not, and the same command does the rest.

use std::io::{self, IsTerminal, Write};

use clap::Args;

use super::calendars::CalendarPlan;
use super::plan::{Action, Plan, SchedulePlan};
use super::workflows::WorkflowPlan;
use super::{CommandContext, Files, show};
use crate::commands::consent;
use crate::failure::CommandError;
use crate::output::plain;

/// Options of `apply`.
#[derive(Debug, Args)]
#[command(
    after_help = "Shows the changes and asks for confirmation. Settings that a file leaves out get their \
    defaults, except that a paused schedule stays paused.\n\n\
    Examples:\n  \
    tickwheel apply -f schedules.yaml\n  \
    tickwheel apply -f schedules/ --prune --yes\n  \
    tickwheel apply -f schedules.yaml --dry-run"
)]
pub struct ApplyArgs {
    #[command(flatten)]
    files: Files,
    /// Do not ask for confirmation
    #[arg(long, short = 'y')]
    yes: bool,
    /// Only show the changes; exits with 0 whether or not there are any
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
}

impl ApplyArgs {
    /// Without a terminal nobody can be asked, and silence is not consent.
    fn require_consent(&self, json: bool) -> Result<(), CommandError> {
        let can_be_asked = io::stdin().is_terminal() && !self.files.reads_standard_input() && !json;
        if self.yes || self.dry_run || can_be_asked {
            return Ok(());
        }
        Err(CommandError::BadInput(
            "there is no terminal to ask on: use --yes to apply without a question, or --dry-run to only show the changes".into(),
        ))
    }
}

/// Applies files.
pub async fn run(args: ApplyArgs, context: &CommandContext) -> Result<(), CommandError> {
    args.require_consent(context.output.json)?;
    let plan = args.files.plan(context).await?;
    if args.dry_run {
        return show(&plan, false, context);
    }
    if !context.output.json {
        show(&plan, false, context)?;
    }
    if plan.changes() {
        if !args.yes && !is_agreed(&plan)? {
            return Err(CommandError::NotGood("nothing was changed".into()));
        }
        perform(&plan, context).await?;
    }
    if context.output.json { show(&plan, plan.changes(), context) } else { Ok(()) }
}

fn is_agreed(plan: &Plan) -> Result<bool, CommandError> {
    let mut stderr = io::stderr();
    let schedules: Vec<_> = plan.schedules_to(Action::Delete).map(|schedule| plain(&schedule.name)).collect();
    let workflows: Vec<_> = plan.workflows_to(Action::Delete).map(|workflow| plain(&workflow.name)).collect();
    for (doomed, fate) in [
        (schedules, "schedules are deleted, with their records of firings"),
        (workflows, "workflows are deleted, with their schedules"),
    ] {
        if !doomed.is_empty() {
            writeln!(stderr, "{} {fate}: {}", doomed.len(), doomed.join(", "))?;
        }
    }
    Ok(consent::ask("apply this?")?)
}

/// One request.
struct Step<'a> {
    /// What it did, for the report.
    done: String,
    task: Task<'a>,
}

enum Task<'a> {
    PutCalendar(&'a CalendarPlan),
    PutWorkflow(&'a WorkflowPlan),
    Create(&'a SchedulePlan),
    Change(&'a SchedulePlan),
    Delete(&'a SchedulePlan),
    DeleteWorkflow(&'a WorkflowPlan),
}

impl Task<'_> {
    async fn perform(&self, context: &CommandContext) -> Result<(), CommandError> {
        let client = &context.client;
        let call = match self {
            Self::PutCalendar(plan) => client.put(&["calendars", &plan.name]).json(&plan.request)?,
            Self::PutWorkflow(plan) => client.post(&["workflows"]).json(&plan.body)?,
            Self::Create(plan) => client.post(&["schedules"]).json(&plan.body)?,
            Self::Change(plan) => client.patch(&["schedules", &plan.name]).json(&plan.body)?,
            Self::Delete(plan) => client.delete(&["schedules", &plan.name]),
            Self::DeleteWorkflow(plan) => client.delete(&["workflows", &plan.name]),
        };
        call.send().await?;
        Ok(())
    }
}

fn steps(plan: &Plan) -> Vec<Step<'_>> {
    let put = |action: Action, what: &str, name: &str| {
        let verb = if action == Action::Create { "created" } else { "changed" };
        format!("{verb} {what} {}", plain(name))
    };
    let calendars =
        plan.calendars.iter().filter(|calendar| calendar.action != Action::Keep).map(|calendar| {
            let done = put(calendar.action, "calendar", &calendar.name);
            Step { done, task: Task::PutCalendar(calendar) }
        });
    let stored =
        plan.workflows.iter().filter(|workflow| matches!(workflow.action, Action::Create | Action::Change));
    let workflows = stored.map(|workflow| {
        let done = put(workflow.action, "workflow", &workflow.name);
        Step { done, task: Task::PutWorkflow(workflow) }
    });
    let step = |verb: &str, schedule: &SchedulePlan| format!("{verb} {}", plain(&schedule.name));
    let created = plan
        .schedules_to(Action::Create)
        .map(|schedule| Step { done: step("created", schedule), task: Task::Create(schedule) });
    let changed = plan
        .schedules_to(Action::Change)
        .map(|schedule| Step { done: step("changed", schedule), task: Task::Change(schedule) });
    let deleted = plan
        .schedules_to(Action::Delete)
        .map(|schedule| Step { done: step("deleted", schedule), task: Task::Delete(schedule) });
    let deleted_workflows = plan.workflows_to(Action::Delete).map(|workflow| {
        let done = format!("deleted workflow {}", plain(&workflow.name));
        Step { done, task: Task::DeleteWorkflow(workflow) }
    });
    let deleted = deleted.chain(deleted_workflows);
    calendars.chain(workflows).chain(created).chain(changed).chain(deleted).collect()
}

async fn perform(plan: &Plan, context: &CommandContext) -> Result<(), CommandError> {
    let steps = steps(plan);
    for (index, step) in steps.iter().enumerate() {
        if let Err(failure) = step.task.perform(context).await {
            context.output.note(&where_it_stopped(&steps, index, &failure));
            return Err(failure);
        }
        if !context.output.json {
            context.output.print(&step.done)?;
        }
    }
    Ok(())
}

fn where_it_stopped(steps: &[Step<'_>], failed: usize, failure: &CommandError) -> String {
    let said = |steps: &[Step<'_>]| match steps {
        [] => "nothing".to_owned(),
        steps => steps.iter().map(|step| step.done.as_str()).collect::<Vec<_>>().join(", "),
    };
    // Only a plain refusal is certain to have changed nothing.
    let is_refused = matches!(failure, CommandError::Refused(problem) if problem.status < 500);
    let (certain, doubtful) = if is_refused { (failed, None) } else { (failed + 1, steps.get(failed)) };
    let mut text = format!("done: {}\nnot done: {}", said(&steps[..failed]), said(&steps[certain..]));
    if let Some(step) = doubtful {
        text.push_str(&format!("\nmay be done or not: {}", step.done));
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::Map;
    use tickwheel_protocol::{Code, Problem};

    use super::*;

    fn schedule(name: &str, action: Action) -> SchedulePlan {
        SchedulePlan {
            name: name.into(),
            action,
            description: None,
            fields: Vec::new(),
            firings: None,
            calendars: Vec::new(),
            moves_off_excluded_days: false,
            body: Map::new(),
        }
    }

    fn workflow(name: &str, action: Action) -> WorkflowPlan {
        let name = name.into();
        let (version, is_new_version, tasks_total) = (2, true, 1);
        WorkflowPlan {
            name,
            action,
            version,
            is_new_version,
            tasks_total,
            fields: Vec::new(),
            body: Map::new(),
        }
    }

    #[test]
    fn deletions_come_last_and_what_stays_is_left_alone() {
        let actions = [Action::Delete, Action::Keep, Action::Change, Action::Create];
        let named = || actions.into_iter().zip(["d", "k", "c", "n"]);
        let workflows = named().map(|(action, name)| workflow(name, action)).collect();
        let schedules = named().map(|(action, name)| schedule(name, action)).collect();
        let plan = Plan { calendars: Vec::new(), workflows, schedules };
        let done: Vec<_> = steps(&plan).into_iter().map(|step| step.done).collect();
        let stored = ["changed workflow c", "created workflow n", "created n", "changed c"];
        assert_eq!(done, [&stored[..], &["deleted d", "deleted workflow d"]].concat());
    }

    #[test]
    fn whoever_stops_on_the_way_says_what_is_done_and_what_is_not() {
        let schedules = ["a", "b", "c"].map(|name| schedule(name, Action::Create)).into();
        let plan = Plan { calendars: Vec::new(), workflows: Vec::new(), schedules };
        let steps = steps(&plan);
        let refused = CommandError::Refused(Box::new(Problem::new(Code::NameTaken, "taken")));
        assert_eq!(where_it_stopped(&steps, 1, &refused), "done: created a\nnot done: created b, created c");
        let lost = CommandError::NoConnection { server: "s".into(), cause: "reset".into() };
        assert_eq!(
            where_it_stopped(&steps, 2, &lost),
            "done: created a, created b\nnot done: nothing\nmay be done or not: created c"
        );
    }
}
