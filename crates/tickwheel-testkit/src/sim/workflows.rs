//! Runs of workflows in the simulated cluster: every node conducts, with the real decisions; clients start runs and change their minds.
//!
//! A conductor reads what is to be looked at, decides, and asks the store; meanwhile others do the same, tasks end, and people cancel and retry.

use rand::RngExt;
use tickwheel_core::machine::Event;
use tickwheel_core::ports::{DueJob, RunAdvanced, RunStart, RunStarted, StepEffects};
use tickwheel_core::workflow::{
    Around, Glance, Graph, Look, OnFailure, RunStatus, RunStep, TaskChange, Wish, Workflow, begin, fulfil,
    glance, needs_of, needs_of_review, step_at_a_glance, step_of_review, step_of_tasks,
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
        let wish = self.some_wish(run);
        self.wish(run, &wish);
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
            jobs.jobs.iter().filter(|job| job.state == State::Scheduled).map(DueJob::from).collect();
        let start = RunStart {
            run: begun.run,
            jobs: jobs.jobs,
            looks: jobs.looks,
            notices: begun.notices,
            idempotency: None,
        };
        // An impatient client sends the same again.
        let tries = if self.chance(15) { 2 } else { 1 };
        (1..tries).for_each(|_| self.injected.count(FaultKind::SubmissionDoubled));
        for round in 0..tries {
            let started = self.model.start_run(start.clone()).expect("ids are unique");
            assert_eq!(started == RunStarted::Created, round == 0, "{id}: a run begins once");
        }
        self.workflow_checks.runs.insert(id, Known { workflow, graph });
        if !due.is_empty() {
            self.hint(due);
        }
    }

    fn some_wish(&mut self, run: RunId) -> Wish {
        let tasks = self.model.read_run(run).map(|(_, tasks)| tasks).unwrap_or_default();
        let graph = &self.workflow_checks.runs[&run].graph;
        let paths: Vec<String> = tasks.iter().map(|task| graph.path_of(&task.place)).collect();
        let path = paths[self.rng.random_range(0..paths.len())].clone();
        match self.rng.random_range(0..14) {
            0..2 => Wish::Cancel,
            2..6 => Wish::Retry,
            6 => Wish::Skip(path),
            7..10 => Wish::Pause,
            10 => Wish::Resume,
            11 => Wish::Complete(path, Some(JsonText::from_checked(r#"{"n": 1, "list": [1]}"#))),
            _ => Wish::RetryTask(path),
        }
    }

    /// Somebody wishes something, and is answered when it is in force.
    fn wish(&mut self, id: RunId, wish: &Wish) {
        let Some((run, tasks)) = self.model.read_run(id) else { return };
        let known = &self.workflow_checks.runs[&id];
        let around = Around {
            workflow: &known.workflow,
            graph: &known.graph,
            run: &run,
            now: self.now,
            limits: limits(),
        };
        if let Ok(Some(step)) = fulfil(&around, &tasks, wish) {
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
                    self.workflow_checks.pauses += usize::from(*wish == Wish::Pause);
                }
            }
        }
    }

    /// At the end every run goes on.
    pub(super) fn resume_all_runs(&mut self) {
        let paused = self.model.controls().paused_runs;
        paused.into_iter().for_each(|run| self.wish(run, &Wish::Resume));
    }

    /// A node looks at what there is to be looked at.
    pub(super) fn look_at_runs(&mut self, node: usize) {
        let looks = self.model.looks(None, 20);
        if !looks.is_empty() {
            let look = looks[self.rng.random_range(0..looks.len())];
            if let Some(step) = self.decide_on_look(look) {
                self.ask(node, Request::Conduct(Box::new(step)));
            }
        }
        let delay = if looks.is_empty() { 100 } else { 10 };
        self.later(node, delay, ToNode::Conduct);
    }

    fn decide_on_look(&self, look: Look) -> Option<RunStep> {
        let (run, tasks) = self.model.read_run(look.run())?;
        let known = &self.workflow_checks.runs[&run.id];
        let around = Around {
            workflow: &known.workflow,
            graph: &known.graph,
            run: &run,
            now: self.now,
            limits: limits(),
        };
        let task = tasks.iter().find(|task| task.job_id == look.at);
        let step = match task.map(|task| (task, glance(&known.graph, &run, task))) {
            Some((_, Glance::Nothing)) => RunStep::nothing(&run, self.now),
            Some((task, Glance::Task)) => {
                step_of_tasks(&around, &[task], &data(&self.model, &needs_of(&known.graph, task)))
            }
            Some((_, Glance::Whole)) | None => {
                let found = around.review(&tasks);
                let needs = needs_of_review(&known.graph, &tasks, &found);
                let step = step_of_review(&around, &tasks, &found, &data(&self.model, &needs));
                assert_says_the_same(&around, &step);
                step
            }
        };
        Some(RunStep { looked: vec![look], ..step })
    }

    /// A step arrives at the store.
    pub(super) fn store_conducts(
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
            self.try_again(node, life, Request::Conduct(Box::new(step)));
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

    /// A step that is valid makes jobs that do not exist, and expands what has no parts.
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
                    .is_some_and(|job| change.apply(job, self.now).is_none() && !job.state.is_terminal())
        });
        if exists.is_some() || doubled {
            let what = format!("run {} makes parts of a task twice", step.run);
            return Err(super::checks::violation("I2", self.now, what));
        }
        Ok(())
    }
}

/// What is decided without reading the tasks is what is decided from them.
pub(super) fn assert_says_the_same(around: &Around<'_>, step: &RunStep) {
    if let Some(glance) = step_at_a_glance(around) {
        assert_eq!(glance, *step);
    }
}

fn is_run_here(target: TargetKind) -> bool {
    target != TargetKind::Parts
}
