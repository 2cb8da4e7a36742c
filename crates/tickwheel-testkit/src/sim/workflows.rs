//! Runs of workflows in the simulated cluster: every node reconciles, with the real decisions; clients start runs and
//! change their minds.
//!
//! A reconciler reads the requests, decides, and asks the store; meanwhile others do the same, tasks end, and people
//! cancel and retry.

use rand::RngExt;
use tickwheel_core::machine::Event;
use tickwheel_core::ports::{DueJob, RunAdvanced, RunStart, StepEffects};
use tickwheel_core::workflow::{
    Graph, OnFailure, ReconcileRequest, ReconcileScope, RunCommand, RunContext, RunStatus, RunStep,
    TaskChange, Workflow, apply_command, begin, needs_of, needs_of_review, reconcile_scope, step_from_counts,
    step_of_review, step_of_tasks,
};
use tickwheel_core::{JobId, JsonText, RunId, State, TargetKind};
use uuid::Uuid;

use super::Violation;
use super::graphs::{Graphs, data, limits};
use super::injected::FaultKind;
use super::requests::Request;
use super::world::{ToNode, World};

/// What everybody knows of a run: its definition never changes.
#[derive(Debug)]
pub(super) struct Known {
    pub workflow: Workflow,
    pub graph: Graph,
}

impl World {
    /// One client does something with workflows.
    pub(super) fn client_uses_workflows(&mut self) -> Result<(), Violation> {
        if self.workflow_checks.runs.is_empty() || self.chance(40) {
            self.start_run();
            return Ok(());
        }
        let runs: Vec<RunId> = self.workflow_checks.runs.keys().copied().collect();
        let run = runs[self.rng.random_range(0..runs.len())];
        let command = self.some_command(run);
        self.command(run, &command);
        Ok(())
    }

    fn start_run(&mut self) {
        let on_failure = if self.chance(50) { OnFailure::Continue } else { OnFailure::FailFast };
        let now = self.now;
        let workflow = Graphs { rng: &mut self.rng, retries: 2 }.workflow(on_failure, now);
        let graph = Graph::stored(&workflow.spec).expect("what was made up is a graph");
        let number = self.next_number();
        let id =
            RunId::fresh(Uuid::from_u128(self.fresh_id().as_uuid().as_u128() | u128::from(number) << 24));
        let begun = begin(&graph, &workflow, id, JsonText::null(), None, now).expect("it needs no input");
        let jobs = begun.jobs;
        let due: Vec<DueJob> =
            jobs.jobs.iter().filter(|job| job.state() == State::Scheduled).map(DueJob::from).collect();
        let start = RunStart {
            run: begun.run,
            jobs: jobs.jobs,
            reconcile_requests: jobs.reconcile_requests,
            notices: begun.notices,
            idempotency: None,
        };
        // An impatient client sends the same again.
        let tries = if self.chance(15) { 2 } else { 1 };
        (1..tries).for_each(|_| self.injected.count(FaultKind::SubmissionDoubled));
        for round in 0..tries {
            let started = self.model.start_run(start.clone()).expect("ids are unique");
            assert_eq!(started.as_new().is_some(), round == 0, "{id}: a run begins once");
        }
        self.workflow_checks.runs.insert(id, Known { workflow, graph });
        if !due.is_empty() {
            self.hint(due);
        }
    }

    fn some_command(&mut self, run: RunId) -> RunCommand {
        let tasks = self.model.read_run(run).map(|(_, tasks)| tasks).unwrap_or_default();
        let graph = &self.workflow_checks.runs[&run].graph;
        let paths: Vec<String> = tasks.iter().map(|task| graph.path_of(&task.position)).collect();
        let path = paths[self.rng.random_range(0..paths.len())].clone();
        match self.rng.random_range(0..14) {
            0..2 => RunCommand::Cancel,
            2..6 => RunCommand::Retry,
            6 => RunCommand::Skip(path),
            7..10 => RunCommand::Pause,
            10 => RunCommand::Resume,
            11 => RunCommand::Complete(path, Some(JsonText::from_checked(r#"{"n": 1, "list": [1]}"#))),
            _ => RunCommand::RetryTask(path),
        }
    }

    /// Somebody sends a command, and is answered when it is in force.
    fn command(&mut self, id: RunId, command: &RunCommand) {
        let Some((run, tasks)) = self.model.read_run(id) else { return };
        let known = &self.workflow_checks.runs[&id];
        let context = RunContext {
            workflow: &known.workflow,
            graph: &known.graph,
            run: &run,
            now: self.now,
            limits: limits(),
        };
        if let Ok(Some(step)) = apply_command(&context, &tasks, command) {
            self.workflow_checks.disturbed.insert(id);
            let node = self.some_node();
            let again = step.changes.iter().filter(|(_, change)| change.brings_back());
            let again: Vec<JobId> = again.map(|(id, _)| *id).collect();
            let paused = step.progress.map(|progress| progress.status == RunStatus::Paused);
            let advanced = self.model.advance_runs(vec![step]);
            if let [RunAdvanced::Done(effects)] = advanced.as_slice() {
                again.into_iter().for_each(|id| self.checks.wanted_again(id));
                self.announce(node, effects);
                if let Some(paused) = paused {
                    self.checks.run_pause_acknowledged(id, paused);
                    self.tell(node, ToNode::Machine(Event::RunPauseChanged(id, paused)));
                    self.workflow_checks.pauses += usize::from(*command == RunCommand::Pause);
                }
            }
        }
    }

    /// At the end every run goes on.
    pub(super) fn resume_all_runs(&mut self) {
        let paused = self.model.controls().paused_runs;
        paused.into_iter().for_each(|run| self.command(run, &RunCommand::Resume));
    }

    /// A node takes up reconcile requests.
    pub(super) fn reconcile_runs(&mut self, node: usize) {
        let reconcile_requests = self.model.reconcile_requests(None, 20);
        if !reconcile_requests.is_empty() {
            let request = reconcile_requests[self.rng.random_range(0..reconcile_requests.len())];
            if let Some(step) = self.decide_on_request(request) {
                self.ask(node, Request::Reconcile(Box::new(step)));
            }
        }
        let delay = if reconcile_requests.is_empty() { 100 } else { 10 };
        self.later(node, delay, ToNode::Reconcile);
    }

    fn decide_on_request(&self, request: ReconcileRequest) -> Option<RunStep> {
        let (run, tasks) = self.model.read_run(request.run())?;
        let known = &self.workflow_checks.runs[&run.id];
        let context = RunContext {
            workflow: &known.workflow,
            graph: &known.graph,
            run: &run,
            now: self.now,
            limits: limits(),
        };
        let task = tasks.iter().find(|task| task.job_id == request.id);
        let step = match task.map(|task| (task, reconcile_scope(&known.graph, &run, task))) {
            Some((_, ReconcileScope::Nothing)) => RunStep::nothing(&run, self.now),
            Some((task, ReconcileScope::Task)) => {
                step_of_tasks(&context, &[task], &data(&self.model, &needs_of(&known.graph, task)))
            }
            Some((_, ReconcileScope::Whole)) | None => {
                let found = context.review(&tasks);
                let needs = needs_of_review(&known.graph, &tasks, &found);
                let step = step_of_review(&context, &tasks, &found, &data(&self.model, &needs));
                assert_says_the_same(&context, &step);
                step
            }
        };
        Some(RunStep { reconciled: vec![request], ..step })
    }

    /// A step arrives at the store.
    pub(super) fn store_reconciles(
        &mut self,
        node: usize,
        life: u32,
        step: RunStep,
        answer_lost: bool,
    ) -> Result<(), Violation> {
        self.nothing_is_made_twice(&step)?;
        let advanced = self.model.advance_runs(vec![step.clone()]);
        let RunAdvanced::Done(effects) = &advanced[0] else { return Ok(()) };
        if step.progress.is_some_and(|progress| progress.status.is_over()) {
            self.checks.run_pause_acknowledged(step.run, false);
        }
        self.workflow_checks.steps += 1;
        if answer_lost {
            self.try_again(node, life, Request::Reconcile(Box::new(step)));
            return Ok(());
        }
        self.announce(node, effects);
        Ok(())
    }

    fn announce(&mut self, node: usize, effects: &StepEffects) {
        let due: Vec<DueJob> = effects
            .scheduled
            .iter()
            .filter(|job| is_run_here(job.target))
            .map(|job| job.due.clone())
            .collect();
        if !due.is_empty() {
            self.tell(node, ToNode::Machine(Event::Learned(due)));
        }
        for id in &effects.ended {
            self.tell(node, ToNode::Machine(Event::Forgotten(*id)));
        }
        let stopping: Vec<JobId> = effects.stopping.clone();
        for id in stopping {
            for node in 0..self.nodes.len() {
                self.tell(node, ToNode::Stop(id));
            }
        }
    }

    /// A step that is valid makes jobs that do not exist, and expands what has no items.
    fn nothing_is_made_twice(&self, step: &RunStep) -> Result<(), Violation> {
        let revision = self.model.get_runs(&[step.run]).first().map(|run| run.revision);
        if revision != Some(step.revision) {
            return Ok(());
        }
        let exists = step.jobs.iter().find(|job| self.model.job(job.id).is_some());
        let doubled = step.changes.iter().any(|(id, change)| {
            let expands = matches!(change, TaskChange::Expand { fresh: true, .. });
            expands
                && self
                    .model
                    .job(*id)
                    .is_some_and(|job| change.apply(job, self.now).is_none() && !job.state().is_terminal())
        });
        if exists.is_some() || doubled {
            let what = format!("run {} makes items of a task twice", step.run);
            return Err(super::checks::violation("I2", self.now, what));
        }
        Ok(())
    }
}

/// What is decided without reading the tasks is what is decided from them.
pub(super) fn assert_says_the_same(context: &RunContext<'_>, step: &RunStep) {
    if let Some(reconcile_scope) = step_from_counts(context) {
        assert_eq!(reconcile_scope, *step);
    }
}

fn is_run_here(target: TargetKind) -> bool {
    target != TargetKind::FanOut
}
