//! Runs of workflows: how they begin and go on, and the reconcile requests. Every step is a compare-and-set on the
//! revision.

use std::collections::{BTreeMap, BTreeSet};

use tickwheel_core::ports::{
    Callback, CallbackSubject, Creation, Page, RunAdvanced, RunQuery, RunStart, Scheduled, StepEffects,
    StoreError, StoreResult,
};
use tickwheel_core::workflow::{
    ParentResults, ReconcileRequest, Run, RunCounts, RunNotice, RunStatus, RunStep, RunTask, TaskChange,
    TaskEnds, TaskError,
};
use tickwheel_core::{Job, JobId, RunId, State, Timestamp};

use super::dependencies::waited_for;
use super::lists::{is_none_or, page};
use super::{Model, RunKeyMark};

impl Model {
    /// Stores a run with its jobs, unless there is one of that id or key. Refused if one of its jobs exists already.
    pub fn start_run(&mut self, start: RunStart) -> StoreResult<Creation<Run>> {
        if let Some(seen) = self.seen_run(&start) {
            return Ok(seen);
        }
        if let Some(job) = start.jobs.iter().find(|job| self.job(job.id).is_some()) {
            return Err(StoreError::Aborted(format!("there is a job {} already", job.id)));
        }
        let (id, tenant, created_at) = (start.run.id, start.run.tenant.clone(), start.run.created_at);
        if let Some(idempotency) = start.idempotency {
            let mark = RunKeyMark { fingerprint: idempotency.fingerprint, run: id };
            self.run_keys.insert((tenant, idempotency.key), mark);
        }
        self.runs.insert(id, start.run.clone());
        self.add_jobs(start.jobs);
        start.reconcile_requests.into_iter().for_each(|at| self.request_reconcile(at));
        self.tell(id, start.notices, created_at);
        Ok(Creation::created(start.run))
    }

    fn seen_run(&self, start: &RunStart) -> Option<Creation<Run>> {
        let existing = |run: &Run| Creation::existing(run.clone());
        if let Some(run) = self.runs.get(&start.run.id) {
            return Some(existing(run));
        }
        let idempotency = start.idempotency.as_ref()?;
        let mark = self.run_keys.get(&(start.run.tenant.clone(), idempotency.key.clone()))?;
        if mark.fingerprint != idempotency.fingerprint {
            return Some(Creation::Conflict(mark.run));
        }
        self.runs.get(&mark.run).map(existing)
    }

    fn add_jobs(&mut self, jobs: Vec<Job>) {
        assert_adjacent_tasks_agree(&jobs);
        for job in jobs {
            self.add_edges(&job);
            self.insert(job);
        }
    }

    /// The runs that exist.
    pub fn get_runs(&self, ids: &[RunId]) -> Vec<Run> {
        ids.iter().filter_map(|id| self.runs.get(id)).cloned().collect()
    }

    /// Runs, the latest first.
    pub fn list_runs(&self, query: &RunQuery) -> Page<Run, RunId> {
        let wanted = |run: &&Run| {
            *query.tenant == *run.tenant
                && is_none_or(&query.workflow, |workflow| **workflow == *run.workflow)
                && is_none_or(&query.status, |status| *status == run.progress.status)
                && is_none_or(&query.after, |after| run.id < *after)
        };
        page(self.runs.values().rev().filter(wanted).collect(), query.limit, |run| run.id)
    }

    /// A run and all its jobs by number.
    pub fn read_run(&self, id: RunId) -> Option<(Run, Vec<RunTask>)> {
        let run = self.runs.get(&id)?.clone();
        let all = self.live.values().chain(self.finished.values());
        let mut tasks: Vec<RunTask> =
            all.filter_map(RunTask::of).filter(|task| task.position.run == id).collect();
        tasks.sort_by_key(|task| task.job_id);
        let errors = || tasks.iter().filter_map(|task| task.error.as_ref());
        let bytes = errors().map(|error| error.failure.message.len() as u64).sum();
        for error in tasks.iter_mut().filter_map(|task| task.error.as_mut()) {
            *error = TaskError::of(&error.failure.code, &error.failure.message, bytes);
        }
        Some((run, tasks))
    }

    /// The reconcile requests, by id.
    pub fn reconcile_requests(&self, after: Option<JobId>, limit: usize) -> Vec<ReconcileRequest> {
        let mut reconcile_requests: Vec<ReconcileRequest> = self
            .reconcile_requests
            .iter()
            .map(|(at, times)| ReconcileRequest { id: *at, times: *times })
            .filter(|request| after.is_none_or(|after| request.id > after))
            .collect();
        reconcile_requests.sort_by_key(|request| request.id);
        reconcile_requests.truncate(limit);
        reconcile_requests
    }

    /// Results of jobs, until there are too many bytes of them.
    pub fn read_results(&self, ids: &[JobId], bytes_max: usize) -> ParentResults {
        let (mut needed, mut bytes) = (ParentResults::default(), 0);
        for job in ids.iter().filter_map(|id| self.job(*id)) {
            bytes += job.result.as_ref().map_or(0, |result| result.as_str().len());
            needed.jobs.insert(job.id, job.clone().into());
            if bytes > bytes_max {
                needed.is_cut = true;
                break;
            }
        }
        needed
    }

    pub(super) fn request_reconcile(&mut self, at: JobId) {
        self.reconcile_request_count += 1;
        self.reconcile_requests.insert(at, self.reconcile_request_count);
    }

    /// Running runs that are to be checked because a task may wait for too long.
    pub fn stalling_runs(&self, now: Timestamp, limit: usize) -> Vec<RunId> {
        let stalls = |run: &&Run| {
            run.progress.status == RunStatus::Running && run.progress.stalls_at.is_some_and(|at| at <= now)
        };
        let mut found: Vec<&Run> = self.runs.values().filter(stalls).collect();
        found.sort_by_key(|run| run.progress.stalls_at);
        found.into_iter().map(|run| run.id).take(limit).collect()
    }

    /// These jobs have ended: those of them that are tasks are open no more.
    pub(super) fn count_ends(&mut self, ended: &BTreeSet<JobId>) {
        let mut by_run: BTreeMap<RunId, TaskEnds> = BTreeMap::new();
        for job in ended.iter().filter_map(|id| self.job(*id)) {
            if let Some(position) = &job.spec.position {
                by_run.entry(position.run).or_default().count(job.state());
            }
        }
        for (id, ends) in by_run {
            let Some(run) = self.runs.get_mut(&id) else { continue };
            let counts = RunCounts::of(run).after(ends);
            (run.open, run.had_failure) = (counts.open, counts.had_failure);
            if counts.need_reconcile_after(ends) {
                self.request_reconcile(ReconcileRequest::id_of_run(id));
            }
        }
    }

    /// One of its jobs, that had ended, was brought back by somebody.
    pub(super) fn go_on(&mut self, id: RunId) {
        let Some(run) = self.runs.get_mut(&id) else { return };
        run.open += 1;
        run.revision += 1;
        run.progress = run.progress.retried();
        self.request_reconcile(ReconcileRequest::id_of_run(id));
    }

    /// Carries decisions out, one after the other.
    pub fn advance_runs(&mut self, steps: Vec<RunStep>) -> Vec<RunAdvanced> {
        steps.into_iter().map(|step| self.advance_run(step)).collect()
    }

    fn advance_run(&mut self, step: RunStep) -> RunAdvanced {
        if self.runs.get(&step.run).is_none_or(|run| run.revision != step.revision) {
            return RunAdvanced::Stale;
        }
        let mut effects = StepEffects::default();
        let moved = self.change_tasks(&step, &mut effects);
        let (run, added) = (self.runs.entry(step.run), step.jobs.len() as u32);
        run.and_modify(|run| {
            run.total += added;
            run.open += added + moved.retried.len() as u32;
            run.revision += u64::from(step.progress.is_some());
            run.progress = step.progress.unwrap_or(run.progress);
        });
        effects.scheduled.extend(self.propagate_completion(&(&moved.retried | &moved.ended)));
        effects
            .scheduled
            .extend(step.jobs.iter().filter(|job| job.state() == State::Scheduled).map(Scheduled::from));
        self.count_ends(&moved.ended);
        self.add_jobs(step.jobs);
        step.reconcile_requests.into_iter().for_each(|at| self.request_reconcile(at));
        self.reconcile_requests
            .retain(|at, times| !step.reconciled.contains(&ReconcileRequest { id: *at, times: *times }));
        self.tell(step.run, step.notices, step.now);
        RunAdvanced::Done(effects)
    }

    fn tell(&mut self, run: RunId, notices: Vec<RunNotice>, now: Timestamp) {
        for notice in notices {
            let callback = self.about(run, notice, now);
            self.add_callback(callback);
        }
    }

    /// A callback about a run as it stands.
    fn about(&self, run: RunId, notice: RunNotice, now: Timestamp) -> Callback {
        let state = match self.runs[&run].progress.status {
            RunStatus::Running => State::Running,
            RunStatus::Completed => State::Completed,
            RunStatus::Failed => State::Failed,
            RunStatus::Cancelled => State::Cancelled,
            RunStatus::Paused => State::Paused,
        };
        Callback {
            id: 0,
            subject: CallbackSubject::Run { id: run, document: notice.body },
            url: notice.url,
            state,
            attempt: 0,
            completed_at: now,
            result: None,
            error: None,
            tries: 0,
        }
    }

    /// Applies the changes, one after the other; whoever waits for the jobs is told later.
    fn change_tasks(&mut self, step: &RunStep, effects: &mut StepEffects) -> Moved {
        let mut moved = Moved::default();
        let parents: BTreeMap<JobId, _> = step
            .changes
            .iter()
            .filter_map(|(id, _)| self.job(*id))
            .map(|job| (job.id, self.parents_of(job)))
            .collect();
        let mut touched = BTreeSet::new();
        for (id, change) in &step.changes {
            let applied = self.job(*id).cloned().and_then(|mut before| {
                if change.brings_back() {
                    before.parents = parents[id];
                }
                let after = change.apply(&before, step.now)?;
                Some((before, after))
            });
            let Some((before, after)) = applied else {
                self.request_reconcile(ReconcileRequest::id_of_run(step.run));
                continue;
            };
            if matches!(change, TaskChange::Expand { fresh: true, .. }) {
                self.forget_parents(&before);
                self.add_edges(&after);
            }
            moved.note(&before, &after);
            self.restore(&before, after);
            touched.insert(*id);
        }
        for job in touched.iter().filter_map(|id| self.job(*id)) {
            match job.state() {
                State::Scheduled => effects.scheduled.push(Scheduled::from(job)),
                State::Running => effects.stopping.push(job.id),
                state if state.is_terminal() => effects.ended.push(job.id),
                _ => {}
            }
        }
        moved
    }

    /// Once it has items, it waits for them and for nobody else.
    fn forget_parents(&mut self, job: &Job) {
        for parent in waited_for(job) {
            self.children.entry(parent).and_modify(|children| {
                children.remove(&job.id);
            });
        }
    }
}

/// Of new tasks, which come with all that they depend on: whoever waits for one is known to it, and nobody else.
fn assert_adjacent_tasks_agree(jobs: &[Job]) {
    let places = || jobs.iter().filter_map(|job| job.spec.position.as_ref());
    let waited =
        places().flat_map(|position| position.parents.iter().map(|parent| (*parent, position.index)));
    let known = places().flat_map(|position| position.children.iter().map(|child| (position.index, *child)));
    assert_eq!(waited.collect::<BTreeSet<_>>(), known.collect::<BTreeSet<_>>());
}

/// What came back and what ended. One that did both is in both.
#[derive(Default)]
struct Moved {
    retried: BTreeSet<JobId>,
    ended: BTreeSet<JobId>,
}

impl Moved {
    fn note(&mut self, before: &Job, after: &Job) {
        match (before.state().is_terminal(), after.state().is_terminal()) {
            (true, false) => self.retried.insert(after.id),
            (false, true) => self.ended.insert(after.id),
            _ => false,
        };
    }
}
