//! What a step makes of the jobs of its run and of the run itself, the same in both stores.
//!
//! The stores read and lock what a step changes, let it be changed here, and write down what came of it. A job that has
//! ended is brought back before anything else can happen to it; it may end again in the same step, if somebody says
//! that it is done after all.
//!
//! Deliberately not here: SQL, and what a change means to a job (that is
//! [`tickwheel_core::workflow::TaskChange::apply`]).

use std::collections::BTreeMap;

use tickwheel_core::ports::{Scheduled, StepEffects};
use tickwheel_core::workflow::{Run, RunCounts, RunStep, TaskChange, TaskEnds};
use tickwheel_core::{Job, JobId, State};

/// A job before and after all that a step does to it.
#[derive(Clone, Debug)]
pub(crate) struct ChangedTask {
    pub before: Job,
    pub after: Job,
    /// Something was done to it.
    was_touched: bool,
}

impl ChangedTask {
    fn unchanged(job: &Job) -> Self {
        Self { before: job.clone(), after: job.clone(), was_touched: false }
    }

    /// Whether it had ended and came back, perhaps only to end again.
    pub fn was_retried(&self) -> bool {
        self.before.state().is_terminal()
    }

    /// Whether it is over now.
    pub fn has_ended(&self) -> bool {
        self.after.state().is_terminal()
    }

    fn change(&mut self, change: &TaskChange, step: &RunStep) -> bool {
        let Some(after) = change.apply(&self.after, step.now) else { return false };
        self.after = after;
        self.was_touched = true;
        true
    }
}

/// What a step makes of the jobs that are there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Applied {
    /// Those that change, by id.
    pub tasks: Vec<ChangedTask>,
    /// Something did not apply: somebody was faster.
    pub missed: bool,
}

impl Applied {
    /// Applies the changes of a step to the jobs that were found, one after the other.
    pub fn of(step: &RunStep, found: &BTreeMap<JobId, Job>) -> Self {
        let mut tasks: BTreeMap<JobId, ChangedTask> = BTreeMap::new();
        let mut missed = false;
        for (id, change) in &step.changes {
            let Some(job) = found.get(id) else {
                missed = true;
                continue;
            };
            let task = tasks.entry(*id).or_insert_with(|| ChangedTask::unchanged(job));
            missed |= !task.change(change, step);
        }
        let touched = tasks.into_values().filter(|task| task.was_touched);
        let as_kept = |job: Job| if job.state().is_terminal() { job.archived() } else { job };
        let tasks = touched.map(|task| ChangedTask { after: as_kept(task.after), ..task }).collect();
        Self { tasks, missed }
    }

    /// Those that had ended and came back.
    pub fn retried(&self) -> impl Iterator<Item = &ChangedTask> {
        self.tasks.iter().filter(|task| task.was_retried())
    }

    /// Those that are over now.
    pub fn ended(&self) -> impl Iterator<Item = &ChangedTask> {
        self.tasks.iter().filter(|task| task.has_ended())
    }

    /// Those that were not over and are not.
    pub fn updated(&self) -> impl Iterator<Item = &ChangedTask> {
        self.tasks.iter().filter(|task| !task.was_retried() && !task.has_ended())
    }

    /// The run after the step.
    pub fn run_after(&self, run: &Run, step: &RunStep) -> Run {
        let added = step.jobs.len() as u32;
        let opened = run.open + added + self.retried().count() as u32;
        let counts = RunCounts { open: opened, ..RunCounts::of(run) }.after(self.ends());
        Run {
            total: run.total + added,
            open: counts.open,
            had_failure: counts.had_failure,
            revision: run.revision + u64::from(step.progress.is_some()),
            progress: step.progress.unwrap_or(run.progress),
            ..run.clone()
        }
    }

    /// Whether the run, which is like this after the step, needs another reconcile.
    pub fn needs_reconcile(&self, after: &Run) -> bool {
        self.missed || RunCounts::of(after).need_reconcile_after(self.ends())
    }

    fn ends(&self) -> TaskEnds {
        let mut ends = TaskEnds::default();
        self.ended().for_each(|task| ends.count(task.after.state()));
        ends
    }

    /// What the step brought about; jobs that were released by their counts come to it.
    pub fn effects(&self, step: &RunStep) -> StepEffects {
        let in_state = |state| self.tasks.iter().filter(move |task| task.after.state() == state);
        let released = in_state(State::Scheduled).map(|task| &task.after);
        let new = step.jobs.iter().filter(|job| job.state() == State::Scheduled);
        StepEffects {
            scheduled: released.chain(new).map(Scheduled::from).collect(),
            ended: self.ended().map(|task| task.after.id).collect(),
            stopping: in_state(State::Running).map(|task| task.after.id).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use tickwheel_core::JobId;
    use tickwheel_testkit::fixtures::{JobInTest as _, at, run};

    use super::*;

    fn found(jobs: &[Job]) -> BTreeMap<JobId, Job> {
        jobs.iter().map(|job| (job.id, job.clone())).collect()
    }

    fn end(state: State) -> TaskChange {
        TaskChange::End { state, result: None, error: None }
    }

    #[test]
    fn several_changes_of_one_job_are_applied_in_order() {
        let start = run().task([]).build();
        let mut failed = start.jobs[0].clone().in_state(State::Failed);
        (failed.attempt, failed.completed_at) = (1, Some(at(1)));
        let mut step = RunStep::nothing(&start.run, at(5));
        step.changes = vec![(failed.id, TaskChange::Retry), (failed.id, end(State::Completed))];
        let applied = Applied::of(&step, &found(&[failed]));
        assert!(!applied.missed);
        assert_eq!((applied.retried().count(), applied.ended().count()), (1, 1));
        let run = Run { open: 0, ..start.run };
        assert_eq!(applied.run_after(&run, &step).open, 0, "it was not open before and is not now");
    }

    #[test]
    fn what_does_not_apply_is_left_out_and_seen() {
        let start = run().task([]).build();
        let mut step = RunStep::nothing(&start.run, at(5));
        step.changes = vec![(start.jobs[0].id, TaskChange::Block)];
        let applied = Applied::of(&step, &found(&start.jobs));
        assert!(applied.missed && applied.tasks.is_empty());
        assert!(applied.needs_reconcile(&start.run));
        assert!(Applied::of(&step, &BTreeMap::new()).missed, "nor what is not there");
    }

    #[test]
    fn a_run_is_reconciled_when_nothing_but_blocked_jobs_is_open() {
        let start = run().task([]).reconciled([]).reconciled([]).build();
        let mut step = RunStep::nothing(&start.run, at(5));
        step.changes = vec![(start.jobs[1].id, end(State::Completed))];
        let applied = Applied::of(&step, &found(&start.jobs));
        let mut after = applied.run_after(&start.run, &step);
        assert_eq!(after.open, 2);
        assert!(!applied.needs_reconcile(&after));
        after.progress.blocked = 2;
        assert!(applied.needs_reconcile(&after));
    }
}
