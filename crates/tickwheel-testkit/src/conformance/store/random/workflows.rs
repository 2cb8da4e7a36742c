//! Draws operations on workflows and their runs. What a step does need not make sense for a workflow: a store carries
//! it out all the same.

use std::collections::BTreeSet;

use rand::RngExt;
use tickwheel_core::parents::Release;
use tickwheel_core::ports::{JobQuery, RunQuery, WorkflowQuery};
use tickwheel_core::workflow::{
    ReconcileRequest, Run, RunNotice, RunProgress, RunStatus, RunStep, RunTask, TaskChange,
};
use tickwheel_core::{Failure, Job, JobId, JsonText, RunId, State, Target};

use super::generator::{Generator, QUEUES, TENANTS};
use super::workflow_operation::WorkflowOperation as Operation;
use crate::fixtures::{RunBuilder, items_of, run_at, run_id, workflow};
use crate::model::Model;

const RUNS_MAX: usize = 8;
const NAMES: [&str; 3] = ["etl", "Etl", "report %"];

impl Generator {
    /// The next operation on workflows.
    pub fn workflow_operation(&mut self, model: &Model) -> Operation {
        let may_start = self.runs.len() < RUNS_MAX && self.has_room_for_jobs();
        if may_start && (model.runs().is_empty() || self.chance(20)) {
            return self.start_run();
        }
        match self.rng.random_range(0..100) {
            0..8 => Operation::Put(self.workflow()),
            8..12 => {
                let version = self.chance(50).then(|| self.rng.random_range(0..4));
                Operation::Get(self.workflow(), version)
            }
            12..15 => Operation::List(WorkflowQuery {
                tenant: self.one_of(TENANTS).to_owned(),
                after: self.chance(30).then(|| self.one_of(NAMES).to_owned()),
                limit: self.rng.random_range(1..4),
            }),
            15..20 => Operation::ListRuns(self.run_query()),
            20..24 => self.list_tasks(),
            24..28 => Operation::Stalling(self.around_now()),
            _ => self.advance_runs(model),
        }
    }

    fn workflow(&mut self) -> tickwheel_core::workflow::Workflow {
        let description = format!("{}", self.rng.random_range(0..3));
        let builder = workflow(self.one_of(NAMES)).tenant(self.one_of(TENANTS));
        builder.description(&description).created_at(self.now).build()
    }

    fn start_run(&mut self) -> Operation {
        let number = self.runs.len() as u64 + 1;
        let (tenant, name, stalls_at) = (self.one_of(TENANTS), self.one_of(NAMES), self.around_now());
        let stalls_at = self.chance(30).then_some(stalls_at);
        let mut builder = run_at(self.now, number).with(|run| {
            (run.tenant, run.workflow, run.progress.stalls_at) = (tenant.into(), name.into(), stalls_at);
        });
        for index in 1..=self.rng.random_range(1..7) {
            builder = self.add_task(builder, index);
        }
        if self.chance(30) {
            let key = format!("run-{}", self.rng.random_range(0..3));
            builder = builder.idempotency(&key, self.one_of([1, 1, 2]));
        }
        let start = builder.build();
        // Also those that turn out to be repeated: then the ids are ones that do not exist.
        self.runs.push(start.run.id);
        self.jobs.extend(start.jobs.iter().map(|job| job.id));
        Operation::Start(Box::new(start))
    }

    /// The next task: of any kind, and depending on up to three of those before it.
    fn add_task(&mut self, builder: RunBuilder, index: u32) -> RunBuilder {
        let mut parents: BTreeSet<u32> = BTreeSet::new();
        for _ in 0..self.rng.random_range(0..4) {
            parents.extend((index > 1).then(|| self.rng.random_range(1..index)));
        }
        let parents: Vec<u32> = parents.into_iter().collect();
        // The reconciler releases a fan-out.
        let (release, is_fan_out) = match self.rng.random_range(0..8) {
            0..4 => (Release::Task, false),
            4 => (Release::Reconciled, false),
            5 => (Release::Watched, false),
            6 => (Release::Reconciled, true),
            _ => (Release::Watched, true),
        };
        let builder = builder.job(release, &parents);
        let (queue, told) = (self.one_of(QUEUES), self.chance(20));
        let builder = builder.with_job(|job| {
            job.queue = queue.into();
            if told {
                std::sync::Arc::make_mut(&mut job.spec).callback_url = Some("http://example.com/task".into());
            }
        });
        if is_fan_out { builder.fan_out() } else { builder }
    }

    fn advance_runs(&mut self, model: &Model) -> Operation {
        let mut ids = vec![self.any_run(), self.any_run()];
        ids.dedup();
        Operation::Advance(ids.into_iter().map(|id| self.run_step(model, id)).collect())
    }

    fn run_step(&mut self, model: &Model, id: RunId) -> (RunStep, Vec<JobId>) {
        let Some((run, tasks)) = model.read_run(id) else {
            let nobodys = run_at(self.now, 1).with(|run| run.id = id).build();
            return (RunStep::nothing(&nobodys.run, self.now), Vec::new());
        };
        let mut step = RunStep::nothing(&run, self.now);
        if self.chance(10) {
            step.revision += 1;
        }
        for _ in 0..self.rng.random_range(0..4) {
            let task = &tasks[self.rng.random_range(0..tasks.len())];
            self.change_task(model, &run, task, &mut step);
        }
        // New jobs take numbers.
        if !step.jobs.is_empty() || self.chance(60) {
            step.progress = Some(self.progress_of(&run, &step));
        }
        if self.chance(20) {
            step.reconcile_requests.push(ReconcileRequest::id_of_run(id));
        }
        if self.chance(10) {
            step.notices = vec![RunNotice { url: "http://example.com/run".into(), body: JsonText::null() }];
        }
        let requested_ids = model
            .reconcile_requests(None, 1_000)
            .into_iter()
            .map(|request| request.id)
            .filter(|at| RunId::of_task(*at) == id);
        let reconciled = requested_ids.filter(|_| self.chance(50)).collect();
        (step, reconciled)
    }

    fn progress_of(&mut self, run: &Run, step: &RunStep) -> RunProgress {
        RunProgress {
            status: self.one_of(RunStatus::ALL),
            cancel_requested: self.chance(20),
            ended_at: self.chance(30).then_some(self.now),
            paused_at: self.chance(30).then_some(self.now),
            next_index: run.progress.next_index + step.jobs.len() as u32,
            after_first: self.chance(20).then_some(1),
            blocked: self.rng.random_range(0..3),
            stalled: self.rng.random_range(0..3),
            stalls_at: self.chance(50).then(|| self.around_now()),
            data_bytes: self.rng.random_range(0..3),
        }
    }

    fn change_task(&mut self, model: &Model, run: &Run, task: &RunTask, step: &mut RunStep) {
        let is_fan_out = model.job(task.job_id).is_some_and(|job| job.spec.target == Target::FanOut);
        let waits = matches!(task.state, State::Pending | State::Blocked);
        // Nobody ends a job and brings it back in one step.
        if step.changes.iter().any(|(id, _)| *id == task.job_id) {
            return;
        }
        if is_fan_out && waits && task.fan_out.is_none() && step.jobs.is_empty() {
            return self.expand(model, run, task, step);
        }
        let change = match self.rng.random_range(0..12) {
            // A fan-out never starts itself.
            0..3 if !is_fan_out => TaskChange::Release { payload: self.some_payload().map(Into::into) },
            3 => TaskChange::Block,
            4 => TaskChange::Unblock,
            5..8 => self.ending(),
            8 => TaskChange::Stop,
            9 => {
                step.changes.push((task.job_id, TaskChange::Retry));
                self.ending()
            }
            _ => TaskChange::Retry,
        };
        step.changes.push((task.job_id, change));
    }

    /// Items come with the next progress, which is what gives them their numbers.
    fn expand(&mut self, model: &Model, run: &Run, task: &RunTask, step: &mut RunStep) {
        let fan_out_task: Option<&Job> = model.job(task.job_id).filter(|_| self.has_room_for_jobs());
        let Some(fan_out_task) = fan_out_task else { return };
        let (fan_out, jobs) = items_of(run, fan_out_task, self.rng.random_range(1..4));
        step.changes.push((fan_out_task.id, TaskChange::Expand { fan_out, fresh: true }));
        // A step that was stale is drawn again, with the same numbers.
        let known: BTreeSet<JobId> = self.jobs.iter().copied().collect();
        self.jobs.extend(jobs.iter().map(|job| job.id).filter(|id| !known.contains(id)));
        step.jobs = jobs;
    }

    fn some_payload(&mut self) -> Option<JsonText> {
        self.chance(30).then(|| JsonText::from_checked("[\"data\"]"))
    }

    fn ending(&mut self) -> TaskChange {
        let state = self.one_of([
            State::Completed,
            State::Completed,
            State::Skipped,
            State::Failed,
            State::Cancelled,
        ]);
        let result = (state == State::Completed).then(|| JsonText::from_checked("[2]"));
        let error = self.chance(50).then(|| Failure::new("why", format!("at {:?}", self.now)));
        TaskChange::End { state, result, error }
    }

    fn run_query(&mut self) -> RunQuery {
        RunQuery {
            tenant: self.one_of(TENANTS).to_owned(),
            workflow: self.chance(40).then(|| self.one_of(NAMES).to_owned()),
            status: self.chance(40).then(|| self.one_of(RunStatus::ALL)),
            after: self.chance(20).then(|| self.any_run()),
            limit: self.rng.random_range(1..5),
        }
    }

    fn list_tasks(&mut self) -> Operation {
        Operation::ListJobs(JobQuery {
            run: Some(self.any_run()),
            states: self.some_of(40, State::ALL),
            limit: self.rng.random_range(1..5),
            ..JobQuery::default()
        })
    }

    pub(super) fn any_run(&mut self) -> RunId {
        match self.runs.is_empty() || self.chance(3) {
            true => run_id(self.now, 1 << 20),
            false => self.runs[self.rng.random_range(0..self.runs.len())],
        }
    }
}
