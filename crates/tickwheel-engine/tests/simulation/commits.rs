//! What the store does, checked at the moment at which it is done: whoever asked for it, however late, and whether or
//! not anybody hears of it.

use std::collections::BTreeMap;

use tickwheel_core::change::Change;
use tickwheel_core::ports::{
    Advanced, Changed, Claim, Creation, NewJob, RunAdvanced, RunStart, ScheduleCreated, ScheduleStep,
    Session, Settled, SettledBatch, StoreResult, UnknownParent, WorkerRenewal,
};
use tickwheel_core::schedule::{Fire, Schedule};
use tickwheel_core::settle::{DeadReason, Next, Settlement};
use tickwheel_core::worker::{NewWorker, WorkerSession};
use tickwheel_core::workflow::{Graph, Run, RunStatus, RunStep, TaskChange};
use tickwheel_core::{Job, JobId, ScheduleId, SessionId, State, Timestamp};

use crate::Violation;
use crate::checks::violation;
use crate::cluster::Cluster;
use crate::dependencies::parents_have_completed;
use crate::injected::FaultKind;

/// Jobs.
impl Cluster {
    pub fn submit_jobs(&mut self, jobs: Vec<NewJob>) -> StoreResult<Vec<Creation<Job, UnknownParent>>> {
        let ids: Vec<JobId> = jobs.iter().map(|new| new.job.id).collect();
        let results = self.model.with_model(|model| model.submit_jobs(jobs))?;
        for (id, result) in ids.into_iter().zip(&results) {
            if result.as_new().is_some() {
                self.checks.stored(id);
            }
        }
        Ok(results)
    }

    pub fn claim(&mut self, claim: &Claim) -> Vec<Job> {
        let (model, now) = (self.model.clone(), self.real());
        let node = self.sessions.iter().position(|session| *session == Some(claim.session));
        let taken = model.with_model(|model| {
            let before: BTreeMap<JobId, Job> =
                claim.jobs.iter().filter_map(|id| Some((*id, model.job(*id)?.clone()))).collect();
            let taken = model.claim(claim);
            for job in &taken {
                let found = self.checks.claimed(&before[&job.id], job, claim.now);
                self.check(found);
                self.check(parents_have_completed(model, job, claim.now));
                let found = self.workflow_checks.claimed(model, job, claim.now);
                self.check(found);
            }
            taken
        });
        if let Some(node) = node.filter(|_| !taken.is_empty()) {
            if !self.is_late {
                taken.iter().for_each(|job| self.checks.taken(node, job, now));
            }
            self.freeze_in_claim(node);
        }
        taken
    }

    pub fn settle(&mut self, settlements: &[Settlement]) -> SettledBatch {
        let model = self.model.clone();
        model.with_model(|model| {
            let job = |model: &tickwheel_testkit::Model, settlement: &Settlement| {
                model.job(settlement.job_id).cloned()
            };
            let before: Vec<Option<Job>> = settlements.iter().map(|s| job(model, s)).collect();
            let batch = model.settle(settlements);
            for ((settlement, before), result) in settlements.iter().zip(before).zip(&batch.settled) {
                let of_job = |other: &&Settlement| other.job_id == settlement.job_id;
                if settlements.iter().filter(of_job).count() > 1 {
                    // What one of them found, another has left: what was before both says nothing.
                    continue;
                }
                let attempt = (settlement.job_id, settlement.attempt);
                let after = model.job(settlement.job_id);
                let found =
                    self.checks.written(*result, before.as_ref(), attempt, after, settlement.ended_at);
                self.check(found);
                if *result == Settled::Applied {
                    self.was_settled(settlement, before.as_ref());
                }
            }
            batch
        })
    }

    fn was_settled(&mut self, settlement: &Settlement, before: Option<&Job>) {
        let found = self.checks.lost_alone(settlement, before);
        self.check(found);
        match settlement.next {
            Next::ReturnToQueue { .. } => self.injected.count(FaultKind::NotSent),
            Next::Fail { reason: DeadReason::PoisonPill } => self.injected.count(FaultKind::Poison),
            _ => {}
        }
    }

    pub fn await_report(&mut self, job_id: JobId, attempt: u32) -> Settled {
        let (model, now) = (self.model.clone(), self.real());
        model.with_model(|model| {
            let before = model.job(job_id).cloned();
            let result = model.await_report(job_id, attempt);
            let found =
                self.checks.written(result, before.as_ref(), (job_id, attempt), model.job(job_id), now);
            self.check(found);
            result
        })
    }

    pub fn change_job(&mut self, id: JobId, change: &Change, now: Timestamp) -> Changed {
        let changed = self.model.with_model(|model| model.change_job(id, change, now));
        if let Changed::Done(job) = &changed {
            self.checks.changed(job);
            if matches!(change, Change::Retry { .. }) {
                self.checks.begins_anew(id);
            }
            self.workflow_checks.disturbed.extend(job.spec.position.as_ref().map(|position| position.run));
        }
        changed
    }
}

/// Sessions and switches.
impl Cluster {
    pub fn open_session(&mut self, node: usize, session: Session) -> StoreResult<()> {
        let id = session.id;
        self.model.with_model(|model| model.open_session(session))?;
        self.sessions[node] = Some(id);
        Ok(())
    }

    pub fn open_worker(&mut self, worker: NewWorker) -> StoreResult<WorkerSession> {
        let now = self.real();
        Ok(self.model.with_model(|model| model.open_worker(worker, now)))
    }

    pub fn renew_worker(&mut self, id: SessionId) -> Option<WorkerRenewal> {
        let now = self.real();
        self.model.with_model(|model| model.renew_worker(id, now))
    }

    pub fn extend_workers(&mut self) {
        let now = self.real();
        self.model.with_model(|model| model.extend_workers(now));
    }

    pub fn set_halted(&mut self, halted: bool) {
        self.model.with_model(|model| model.set_halted(halted));
        self.checks.halted(halted);
    }

    pub fn set_queue_paused(&mut self, queue: &str, paused: bool) {
        self.model.with_model(|model| model.set_queue_paused(queue, paused));
        self.checks.queue_paused(queue, paused);
    }
}

/// Schedules.
impl Cluster {
    pub fn create_schedule(&mut self, schedule: &Schedule) -> StoreResult<ScheduleCreated> {
        let created = self.model.with_model(|model| model.create_schedule(schedule.clone()))?;
        if created == ScheduleCreated::Created {
            self.schedule_checks.created(schedule);
        }
        Ok(created)
    }

    pub fn change_schedule(&mut self, schedule: &Schedule, fires: &[Fire]) -> Advanced {
        let model = self.model.clone();
        model.with_model(|model| {
            let before = model.get_schedules(&[schedule.id]).pop();
            let advanced = model.change_schedule(schedule.clone(), fires.to_vec());
            if let (Some(before), Advanced::Done) = (before, advanced) {
                self.schedule_checks.changed(&before, schedule);
            }
            advanced
        })
    }

    pub fn delete_schedule(&mut self, id: ScheduleId) -> bool {
        let deleted = self.model.with_model(|model| model.delete_schedule(id));
        if deleted {
            self.schedule_checks.deleted(id);
        }
        deleted
    }

    pub fn advance_schedules(&mut self, steps: &[ScheduleStep]) -> Vec<Advanced> {
        let (model, latest) = (self.model.clone(), self.latest);
        model.with_model(|model| {
            let advanced = model.advance_schedules(steps.to_vec());
            for (step, advanced) in steps.iter().zip(&advanced) {
                if *advanced == Advanced::Done {
                    let found = self.schedule_checks.advanced(model, step, latest);
                    self.check(found);
                    step.jobs.iter().for_each(|job| self.checks.stored(job.id));
                }
            }
            advanced
        })
    }
}

/// Runs of workflows.
impl Cluster {
    pub fn start_run(&mut self, start: RunStart) -> StoreResult<Creation<Run>> {
        let (run, model) = (start.run.clone(), self.model.clone());
        model.with_model(|model| {
            let started = model.start_run(start)?;
            if started.as_new().is_some() {
                let workflow = model.get_workflow(&run.tenant, &run.workflow, Some(run.version));
                let workflow = workflow.expect("a run follows a version that is stored");
                let graph = Graph::stored(&workflow.spec).expect("what is stored is a graph");
                self.workflow_checks.runs.insert(run.id, graph);
            }
            Ok(started)
        })
    }

    pub fn advance_runs(&mut self, steps: &[RunStep]) -> Vec<RunAdvanced> {
        let (model, now) = (self.model.clone(), self.real());
        model.with_model(|model| {
            // One after the other, as the store does it, so that each is looked at as it finds the run.
            let advance = |step: &RunStep| {
                self.check(nothing_is_made_twice(model, step, now));
                let advanced = model.advance_runs(vec![step.clone()]).remove(0);
                if matches!(advanced, RunAdvanced::Done(_)) {
                    self.was_advanced(step);
                }
                advanced
            };
            steps.iter().map(advance).collect()
        })
    }

    fn was_advanced(&mut self, step: &RunStep) {
        self.workflow_checks.steps += 1;
        let brought_back = step.changes.iter().filter(|(_, change)| change.brings_back());
        brought_back.for_each(|(id, _)| self.checks.wanted_again(*id));
        if let Some(progress) = &step.progress {
            self.checks.run_paused(step.run, progress.status == RunStatus::Paused);
        }
    }
}

/// A step that is valid makes jobs that do not exist, and expands what has no items.
fn nothing_is_made_twice(
    model: &tickwheel_testkit::Model,
    step: &RunStep,
    now: Timestamp,
) -> Result<(), Violation> {
    let revision = model.get_runs(&[step.run]).first().map(|run| run.revision);
    if revision != Some(step.revision) {
        return Ok(());
    }
    let exists = step.jobs.iter().any(|job| model.job(job.id).is_some());
    let doubled = step.changes.iter().any(|(id, change)| {
        let expands = matches!(change, TaskChange::Expand { fresh: true, .. });
        let is_refused = |job: &Job| change.apply(job, now).is_none() && !job.state().is_terminal();
        expands && model.job(*id).is_some_and(is_refused)
    });
    if exists || doubled {
        return Err(violation("I2", now, format!("run {} makes items of a task twice", step.run)));
    }
    Ok(())
}

/// Whether the job cannot go on: its parents hold it up.
pub fn is_held_up(job: &Job) -> bool {
    matches!(job.state(), State::Pending | State::Blocked)
}
