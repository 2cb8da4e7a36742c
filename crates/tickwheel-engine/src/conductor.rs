//! Lets runs of workflows go on where counts alone do not say how.
//!
//! ```text
//!  store: looks ──▶ one task: its data ──▶ prepare (core) ─┐
//!             └───▶ the whole run ───────▶ review (core) ──┴─▶ step ──▶ store ──▶ planner, waiters, callbacks
//! ```
//! Whoever ends a task asks for a look in the same transaction, and a look is done only with the step that follows from it. So a crash loses none, and
//! of two conductors that look at the same thing one finds that the other was faster.
//!
//! Runs take turns: a step makes only so much, what is left is asked for again, and a run with a long list of looks goes on when all others were looked at.
//! What is read and what is written at once is bounded in bytes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tickwheel_core::ports::{
    Clock, RunAdvanced, RunChanged, SchedulerError, StepEffects, Store, StoreResult,
};
use tickwheel_core::settle::Outcome;
use tickwheel_core::workflow::{
    Around, DataLimits, Glance, Look, NEEDED_BYTES_MAX, Needed, Run, RunProgress, RunStatus, RunStep,
    RunTask, Wish, fulfil, glance, needs_in_order, needs_of_review, room_to_pause, step_at_a_glance,
    step_of_review, step_of_tasks,
};
use tickwheel_core::{Failure, Job, JobId, JsonText, RunId, State, TargetKind};

use crate::announcer::{Announcer, RunAdvance};
use crate::definitions::{Definition, Definitions};
use crate::dispatcher::Gate;
use crate::metrics;
use crate::running::Running;
use crate::settler::SettlerHandle;
use crate::store_watch::StoreWatch;
use crate::wake_up::WakeUpReceiver;

/// Looks taken up at once.
const LOOKS_LEN_MAX: usize = 500;
/// A look that nobody announced is found after this.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// After a step that somebody else was faster with, how long until it is tried again.
const RETRY_DELAY: Duration = Duration::from_millis(100);
/// Bytes of data written at once, and one step more.
const WRITTEN_BYTES_MAX: usize = 8 << 20;
/// Runs that are looked at for stalled tasks at once.
const STALLS_LEN_MAX: usize = 50;

/// So often a wish is tried that meets a step of the conductor, before somebody is told to come back.
const TRIES_MAX: usize = 50;

/// Carries steps out, and announces what followed.
#[derive(Clone)]
pub struct Conducting {
    pub store: Arc<dyn Store>,
    pub watch: StoreWatch,
    pub clock: Arc<dyn Clock>,
    pub definitions: Definitions,
    pub settler: SettlerHandle,
    pub running: Running,
    pub gate: Gate,
    pub announcer: Announcer,
}

/// See the module.
pub struct Conductor {
    pub conducting: Conducting,
    pub wake_ups: WakeUpReceiver,
}

impl Conductor {
    /// Conducts for ever.
    pub async fn run(self) {
        let mut stalls_looked_at = Instant::now();
        let mut turn = None;
        loop {
            match self.look_around(&mut turn).await {
                Ok(Progress::Made) => continue,
                Ok(Progress::Nothing) => {}
                Ok(Progress::Stale) => tokio::time::sleep(RETRY_DELAY).await,
                Err(error) => {
                    self.conducting.watch.wait_after("conduct", &error).await;
                    continue;
                }
            }
            self.conducting.watch.succeeded("conduct");
            if stalls_looked_at.elapsed() >= POLL_INTERVAL {
                stalls_looked_at = Instant::now();
                match self.look_for_stalls().await {
                    Ok(()) => self.conducting.watch.succeeded("stalls"),
                    Err(error) => self.conducting.watch.wait_after("stalls", &error).await,
                }
            }
            let _ = tokio::time::timeout(POLL_INTERVAL, self.wake_ups.received()).await;
        }
    }

    async fn look_around(&self, turn: &mut Option<JobId>) -> StoreResult<Progress> {
        let looks = self.next_looks(turn).await?;
        if looks.is_empty() {
            return Ok(Progress::Nothing);
        }
        let mut by_run: BTreeMap<RunId, Vec<Look>> = BTreeMap::new();
        looks.into_iter().for_each(|look| by_run.entry(look.run()).or_default().push(look));
        let (mut whole, mut single) = (Vec::new(), Vec::new());
        for (run, looks) in by_run {
            match looks.iter().find(|look| look.is_whole()) {
                Some(look) => whole.push((run, vec![*look])),
                None => single.push((run, looks)),
            }
        }
        let (mut progress, also_whole) = self.glance_at(single).await?;
        let (steps, mut whole) = self.glance_at_whole(whole).await?;
        progress = progress.and(self.conducting.carry_out(steps).await?);
        whole.extend(also_whole);
        // Those that take long come last.
        whole.sort_by_key(|(jobs, _)| *jobs);
        for (_, (run, looks)) in whole {
            progress = progress.and(self.look_at_whole(run, looks).await?);
        }
        Ok(progress)
    }

    /// The next of what there is to look at. A run that has more than that goes on when it is its turn again.
    async fn next_looks(&self, turn: &mut Option<JobId>) -> StoreResult<Vec<Look>> {
        let mut looks = self.conducting.store.looks(*turn, LOOKS_LEN_MAX).await?;
        if looks.is_empty() && turn.is_some() {
            looks = self.conducting.store.looks(None, LOOKS_LEN_MAX).await?;
        }
        let last = looks.last().filter(|_| looks.len() >= LOOKS_LEN_MAX);
        *turn = last.map(|last| JobId::of_task(last.run(), RunId::TASK_INDEX_MAX));
        Ok(looks)
    }

    /// Looks at runs that may say enough themselves; says of which the tasks have to be read.
    async fn glance_at_whole(&self, whole: Vec<Looks>) -> StoreResult<(Vec<Decided>, Vec<WholeLooks>)> {
        let (mut steps, mut left) = (Vec::new(), Vec::new());
        if whole.is_empty() {
            return Ok((steps, left));
        }
        let mut runs = self.runs_of(&whole).await?;
        for (id, looks) in whole {
            let Some(run) = runs.remove(&id) else { continue };
            if run.progress.status.is_over() {
                self.conducting.end_job_of(&run).await?;
            }
            let definition = self.conducting.definitions.of_run(&run).await?;
            match step_at_a_glance(&self.conducting.around(&definition, &run)) {
                Some(step) => steps.push(Decided { step: RunStep { looked: looks, ..step }, run }),
                None => left.push((run.total, (id, looks))),
            }
        }
        Ok((steps, left))
    }

    /// Looks at single tasks; says which of them take a look at their whole run.
    async fn glance_at(&self, single: Vec<Looks>) -> StoreResult<(Progress, Vec<WholeLooks>)> {
        let mut whole = Vec::new();
        if single.is_empty() {
            return Ok((Progress::Nothing, whole));
        }
        // The runs before their tasks: whoever steps in between makes the revision stale on which this is decided. The other way round a
        // fan-out that somebody else has just made would be made again.
        let mut runs = self.runs_of(&single).await?;
        let ids = single.iter().flat_map(|(_, looks)| looks).map(|look| look.at).collect();
        let mut tasks: BTreeMap<RunId, Vec<RunTask>> = BTreeMap::new();
        for task in self.conducting.store.get_jobs(ids).await?.iter().filter_map(RunTask::of) {
            tasks.entry(task.place.run).or_default().push(task);
        }
        let mut glances = Vec::new();
        for (id, looks) in single {
            let Some(run) = runs.remove(&id) else { continue };
            let definition = self.conducting.definitions.of_run(&run).await?;
            let tasks = tasks.remove(&id).unwrap_or_default();
            let kind = |task: &RunTask| glance(&definition.graph, &run, task);
            if tasks.iter().any(|task| kind(task) == Glance::Whole) {
                whole.push((run.total, (id, looks)));
                continue;
            }
            let ready: Vec<RunTask> = tasks.into_iter().filter(|task| kind(task) == Glance::Task).collect();
            glances.push(Glanced { run, definition, ready, looks });
        }
        Ok((self.prepare(glances).await?, whole))
    }

    /// Prepares tasks that are ready, and writes what came of it.
    async fn prepare(&self, glances: Vec<Glanced>) -> StoreResult<Progress> {
        let needs = glances.iter().flat_map(Glanced::needs).collect::<BTreeSet<JobId>>();
        let of_all = self.conducting.results(needs.into_iter().collect()).await?;
        let (mut progress, mut steps, mut bytes) = (Progress::Nothing, Vec::new(), 0);
        for glanced in glances {
            let of_one;
            let needed = if glanced.is_enough(&of_all) {
                &of_all
            } else {
                of_one = self.conducting.results(glanced.needs()).await?;
                &of_one
            };
            let Glanced { run, definition, ready, looks } = glanced;
            let ready: Vec<&RunTask> = ready.iter().collect();
            let step = step_of_tasks(&self.conducting.around(&definition, &run), &ready, needed);
            bytes += step.data_bytes();
            steps.push(Decided { step: RunStep { looked: looks, ..step }, run });
            if bytes >= WRITTEN_BYTES_MAX {
                bytes = 0;
                progress = progress.and(self.conducting.carry_out(std::mem::take(&mut steps)).await?);
            }
        }
        Ok(progress.and(self.conducting.carry_out(steps).await?))
    }

    async fn runs_of(&self, looks: &[Looks]) -> StoreResult<HashMap<RunId, Run>> {
        let runs = self.conducting.store.get_runs(looks.iter().map(|(run, _)| *run).collect()).await?;
        Ok(runs.into_iter().map(|run| (run.id, run)).collect())
    }

    async fn look_at_whole(&self, id: RunId, looks: Vec<Look>) -> StoreResult<Progress> {
        let Some((run, tasks)) = self.conducting.store.read_run(id).await? else { return Ok(Progress::Made) };
        let definition = self.conducting.definitions.of_run(&run).await?;
        let around = self.conducting.around(&definition, &run);
        let found = around.review(&tasks);
        let needed = self.conducting.results(needs_of_review(&definition.graph, &tasks, &found)).await?;
        let step = RunStep { looked: looks, ..step_of_review(&around, &tasks, &found, &needed) };
        self.conducting.carry_out(vec![Decided { run, step }]).await
    }

    async fn look_for_stalls(&self) -> StoreResult<()> {
        for run in self.conducting.store.stalling_runs(self.conducting.clock.now(), STALLS_LEN_MAX).await? {
            self.look_at_whole(run, Vec::new()).await?;
        }
        Ok(())
    }
}

/// A run, and what is to be looked at of it.
type Looks = (RunId, Vec<Look>);

/// The same of a run that is to be looked at as a whole, behind the number of its jobs.
type WholeLooks = (u32, Looks);

/// A run, and which of the tasks that were looked at are ready.
struct Glanced {
    run: Run,
    definition: Arc<Definition>,
    ready: Vec<RunTask>,
    looks: Vec<Look>,
}

impl Glanced {
    fn needs(&self) -> Vec<JobId> {
        needs_in_order(&self.definition.graph, &self.ready)
    }

    fn is_enough(&self, needed: &Needed) -> bool {
        self.ready.iter().all(|task| needed.is_enough_for(&self.definition.graph, task))
    }
}

/// What came of looking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// There was nothing to look at.
    Nothing,
    /// Something was written.
    Made,
    /// Somebody else was faster: it has to be looked at again.
    Stale,
}

impl Progress {
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Made, _) | (_, Self::Made) => Self::Made,
            (Self::Stale, _) | (_, Self::Stale) => Self::Stale,
            (Self::Nothing, Self::Nothing) => Self::Nothing,
        }
    }
}

/// A step, and the run as it was when it was decided on.
pub struct Decided {
    pub run: Run,
    pub step: RunStep,
}

impl Conducting {
    /// What a decision about the run is about.
    pub fn around<'r>(&self, definition: &'r Definition, run: &'r Run) -> Around<'r> {
        Around {
            workflow: &definition.workflow,
            graph: &definition.graph,
            run,
            now: self.clock.now(),
            limits: DataLimits::default(),
        }
    }

    async fn results(&self, ids: Vec<JobId>) -> StoreResult<Needed> {
        if ids.is_empty() {
            return Ok(Needed::default());
        }
        self.store.read_results(ids, NEEDED_BYTES_MAX).await
    }

    /// Writes steps and announces what followed.
    pub async fn carry_out(&self, decided: Vec<Decided>) -> StoreResult<Progress> {
        if decided.is_empty() {
            return Ok(Progress::Nothing);
        }
        let asked = Instant::now();
        let written = self.store.advance_runs(decided.iter().map(|d| d.step.clone()).collect()).await?;
        metrics::commit("conduct", decided.len(), asked.elapsed());
        let mut progress = Progress::Stale;
        for (Decided { run, step }, written) in decided.iter().zip(written) {
            if let RunAdvanced::Done(effects) = written {
                progress = Progress::Made;
                self.announce(run, step, effects).await;
            }
        }
        Ok(progress)
    }

    /// The job that waits for a run that is over ends with it. An attempt that began later is there to let the run go on.
    async fn end_job_of(&self, run: &Run) -> StoreResult<()> {
        let (Some(job_id), Some(ended_at)) = (run.job_id, run.progress.ended_at) else { return Ok(()) };
        let waits = |job: &Job| job.state == State::Running && job.started_at.is_none_or(|at| at <= ended_at);
        if let Some(job) = self.store.get_job(job_id).await?.filter(waits) {
            self.settler.settle_and_wait(job, outcome(run, run.progress.status), ended_at).await;
        }
        Ok(())
    }

    /// Does to a run what somebody wishes.
    pub async fn fulfil(&self, id: RunId, wish: &Wish) -> Result<RunChanged, SchedulerError> {
        let changed = self.decide_and_write(id, wish).await?;
        if *wish == Wish::Pause {
            // Also if somebody else has just paused it: what was claimed before has to have started when this is
            // answered.
            drop(self.gate.write().await);
        }
        Ok(changed)
    }

    async fn decide_and_write(&self, id: RunId, wish: &Wish) -> Result<RunChanged, SchedulerError> {
        for _ in 0..TRIES_MAX {
            let Some((run, tasks)) = self.store.read_run(id).await? else { return Ok(RunChanged::NotFound) };
            let definition = self.definitions.of_run(&run).await?;
            let step = match fulfil(&self.around(&definition, &run), &tasks, wish) {
                Ok(Some(step)) => step,
                Ok(None) => return Ok(RunChanged::Done(Box::new(run))),
                Err(refused) => return Ok(RunChanged::Refused(refused)),
            };
            if step.pauses()
                && let Err(refused) = room_to_pause(self.store.controls().await?.paused_runs.len())
            {
                return Ok(RunChanged::Refused(refused));
            }
            if self.carry_out(vec![Decided { run, step }]).await? == Progress::Made {
                let run = self.store.get_runs(vec![id]).await?.pop();
                return Ok(run.map_or(RunChanged::NotFound, |run| RunChanged::Done(Box::new(run))));
            }
        }
        Err(SchedulerError::Overloaded)
    }

    /// Attempts under way are asked to stop, wherever they are: one that waits for a run of its own ends with that.
    async fn stop(&self, jobs: Vec<JobId>) {
        // A claim may have taken one and not have started it yet: there is nothing to stop before that.
        drop(self.gate.write().await);
        jobs.iter().for_each(|id| self.running.stop(*id));
        let stopping = self.store.get_jobs(jobs).await.unwrap_or_default();
        for job in stopping.iter().filter(|job| job.spec.target.kind() == TargetKind::Workflow) {
            let cancelling = Box::pin(self.fulfil(RunId::of_job(job.id), &Wish::Cancel));
            if let Err(error) = cancelling.await {
                tracing::warn!(%error, job_id = %job.id, "could not cancel the run that a task waits for");
            }
        }
    }

    async fn announce(&self, run: &Run, step: &RunStep, effects: StepEffects) {
        let StepEffects { scheduled, ended, stopping } = effects;
        metrics::tasks_ended(&step.changes, &ended);
        if let Some(progress) = &step.progress {
            report_progress(run, progress);
        }
        let is_paused = |progress: &RunProgress| progress.status == RunStatus::Paused;
        let after = step.progress.as_ref();
        let advance = RunAdvance {
            run_id: run.id,
            pause_changed: after.map(is_paused).filter(|paused| *paused != is_paused(&run.progress)),
            is_over: after.is_some_and(|progress| progress.status.is_over()),
            scheduled,
            ended: &ended,
            callbacks_written: !step.notices.is_empty(),
        };
        self.announcer.run_advanced(advance).await;
        if !stopping.is_empty() {
            self.stop(stopping).await;
        }
    }
}

/// What people see of a step.
fn report_progress(run: &Run, progress: &RunProgress) {
    let Run { id, workflow, .. } = run;
    if progress.status.is_over() {
        metrics::run_finished(progress.status);
        tracing::info!(run_id = %id, %workflow, status = %progress.status, "workflow run ended");
    }
    if progress.stalled > run.progress.stalled {
        metrics::stalled(progress.stalled - run.progress.stalled);
        tracing::warn!(run_id = %id, %workflow, tasks = progress.stalled, "tasks wait for too long");
    }
}

/// What the end of a run means to the job that waits for it.
fn outcome(run: &Run, status: RunStatus) -> Outcome {
    let run_id = run.id;
    match status {
        RunStatus::Completed => {
            let result = format!("{{\"workflow_run_id\":\"{run_id}\",\"status\":\"{status}\"}}");
            Outcome::Completed { result: Some(JsonText::from_checked(result)) }
        }
        RunStatus::Cancelled => Outcome::Cancelled,
        RunStatus::Failed | RunStatus::Running | RunStatus::Paused => Outcome::Failed {
            failure: Failure::new(
                "workflow_failed",
                format!("run {run_id} of workflow {} failed", run.workflow),
            ),
            retryable: true,
            retry_after: None,
        },
    }
}
