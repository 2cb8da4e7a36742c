//! Lets runs of workflows go on where counts alone do not say how.
//!
//! ```text
//!  store: reconcile requests ──▶ one task: its data ──▶ prepare (core) ─┐
//!                        └─────▶ the whole run ───────▶ review (core) ──┴─▶ step ──▶ store ──▶ announcer
//! ```
//! Whoever ends a task writes a reconcile request in the same transaction, and a request is done only with the step
//! that follows from it. So a crash loses none, and of two reconcilers that take up the same request one finds that the
//! other was faster.
//!
//! Runs take turns: a step makes only so much, what is left is requested again, and a run with many requests goes on
//! when all others had their turn. What is read and what is written at once is bounded in bytes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tickwheel_core::ports::StoreResult;
use tickwheel_core::workflow::{
    Definition, ParentResults, ReconcileRequest, ReconcileScope, Run, RunStep, RunTask, needs_in_order,
    needs_of_review, reconcile_scope, step_from_counts, step_of_review, step_of_tasks,
};
use tickwheel_core::{JobId, RunId, Timestamp};
use tokio::time::Instant;

use crate::run_stepper::{Decided, ReconcileProgress, RunStepper};
use crate::store_watch::StoreWatch;
use crate::wake_up::WakeUpReceiver;

/// How the loop behaves.
#[derive(Clone, Copy, Debug)]
pub struct ReconcilerOptions {
    /// Requests taken up at once.
    pub requests_len_max: usize,
    /// A request that nobody announced is found after this.
    pub poll_interval: Duration,
    /// After a step that somebody else was faster with, how long until it is tried again.
    pub retry_delay: Duration,
    /// Bytes of data written at once, and one step more.
    pub written_bytes_max: usize,
    /// Runs that are searched for stalled tasks at once.
    pub stalls_len_max: usize,
}

impl Default for ReconcilerOptions {
    fn default() -> Self {
        Self {
            requests_len_max: 500,
            poll_interval: Duration::from_secs(1),
            retry_delay: Duration::from_millis(100),
            written_bytes_max: 8 << 20,
            stalls_len_max: 50,
        }
    }
}

/// See the module.
pub struct WorkflowReconciler {
    pub options: ReconcilerOptions,
    pub watch: StoreWatch,
    pub stepper: RunStepper,
    pub wake_ups: WakeUpReceiver,
    /// Whose turn is next: what comes after this job.
    pub turn: Option<JobId>,
}

impl WorkflowReconciler {
    /// Reconciles for ever.
    pub async fn run(mut self) {
        let mut stalls_found_at = Instant::now();
        loop {
            match self.run_once().await {
                Ok(ReconcileProgress::Made) => continue,
                Ok(ReconcileProgress::Nothing) => {}
                Ok(ReconcileProgress::Stale) => tokio::time::sleep(self.options.retry_delay).await,
                Err(error) => {
                    self.watch.wait_after("reconcile", &error).await;
                    continue;
                }
            }
            self.watch.succeeded("reconcile");
            if stalls_found_at.elapsed() >= self.options.poll_interval {
                stalls_found_at = Instant::now();
                match self.find_stalls(self.stepper.clock.now()).await {
                    Ok(()) => self.watch.succeeded("stalls"),
                    Err(error) => self.watch.wait_after("stalls", &error).await,
                }
            }
            let _ = tokio::time::timeout(self.options.poll_interval, self.wake_ups.received()).await;
        }
    }

    /// Deals with the next requests. Each decision asks the clock, because those before it may have taken a while.
    pub async fn run_once(&mut self) -> StoreResult<ReconcileProgress> {
        let requests = self.next_requests().await?;
        if requests.is_empty() {
            return Ok(ReconcileProgress::Nothing);
        }
        let mut by_run: BTreeMap<RunId, Vec<ReconcileRequest>> = BTreeMap::new();
        requests.into_iter().for_each(|request| by_run.entry(request.run()).or_default().push(request));
        let (mut whole, mut single) = (Vec::new(), Vec::new());
        for (run, requests) in by_run {
            match requests.iter().find(|request| request.is_whole()) {
                Some(request) => whole.push((run, vec![*request])),
                None => single.push((run, requests)),
            }
        }
        let (mut progress, also_whole) = self.reconcile_tasks(single).await?;
        let (steps, mut whole) = self.steps_without_tasks(whole).await?;
        progress = progress.and(self.stepper.carry_out(steps).await?);
        whole.extend(also_whole);
        // Those that take long come last.
        whole.sort_by_key(|(jobs, _)| *jobs);
        for (_, (run, requests)) in whole {
            progress = progress.and(self.reconcile_run(run, requests).await?);
        }
        Ok(progress)
    }

    /// The next of the requests. A run that has more of them than that goes on when it is its turn again.
    async fn next_requests(&mut self) -> StoreResult<Vec<ReconcileRequest>> {
        let len_max = self.options.requests_len_max;
        let mut requests = self.stepper.store.reconcile_requests(self.turn, len_max).await?;
        if requests.is_empty() && self.turn.is_some() {
            requests = self.stepper.store.reconcile_requests(None, len_max).await?;
        }
        let last = requests.last().filter(|_| requests.len() >= len_max);
        self.turn = last.map(|last| JobId::of_task(last.run(), RunId::TASK_INDEX_MAX));
        Ok(requests)
    }

    /// Steps of runs that say enough themselves; and of which the tasks have to be read.
    async fn steps_without_tasks(
        &self,
        whole: Vec<RunRequests>,
    ) -> StoreResult<(Vec<Decided>, Vec<WholeRunRequests>)> {
        let (mut steps, mut left) = (Vec::new(), Vec::new());
        if whole.is_empty() {
            return Ok((steps, left));
        }
        let mut runs = self.runs_of(&whole).await?;
        for (id, requests) in whole {
            let Some(run) = runs.remove(&id) else { continue };
            if run.progress.status.is_over() {
                self.stepper.end_job_of(&run).await?;
            }
            let definition = self.stepper.definitions.of_run(&run).await?;
            match step_from_counts(&self.stepper.context(&definition, &run)) {
                Some(step) => steps.push(Decided { step: RunStep { reconciled: requests, ..step }, run }),
                None => left.push((run.total, (id, requests))),
            }
        }
        Ok((steps, left))
    }

    /// Reconciles single tasks; says for which of them the whole run has to be read.
    async fn reconcile_tasks(
        &self,
        single: Vec<RunRequests>,
    ) -> StoreResult<(ReconcileProgress, Vec<WholeRunRequests>)> {
        let mut whole = Vec::new();
        if single.is_empty() {
            return Ok((ReconcileProgress::Nothing, whole));
        }
        // The runs before their tasks: whoever steps in between makes the revision stale on which this is decided. The
        // other way round a fan-out that somebody else has just made would be made again.
        let mut runs = self.runs_of(&single).await?;
        let ids = single.iter().flat_map(|(_, requests)| requests).map(|request| request.id).collect();
        let mut tasks: BTreeMap<RunId, Vec<RunTask>> = BTreeMap::new();
        for task in self.stepper.store.get_jobs(ids).await?.iter().filter_map(RunTask::of) {
            tasks.entry(task.position.run).or_default().push(task);
        }
        let mut ready_tasks = Vec::new();
        for (id, requests) in single {
            let Some(run) = runs.remove(&id) else { continue };
            let definition = self.stepper.definitions.of_run(&run).await?;
            let tasks = tasks.remove(&id).unwrap_or_default();
            let kind = |task: &RunTask| reconcile_scope(&definition.graph, &run, task);
            if tasks.iter().any(|task| kind(task) == ReconcileScope::Whole) {
                whole.push((run.total, (id, requests)));
                continue;
            }
            let ready: Vec<RunTask> =
                tasks.into_iter().filter(|task| kind(task) == ReconcileScope::Task).collect();
            ready_tasks.push(ReadyTasks { run, definition, ready, requests });
        }
        Ok((self.prepare(ready_tasks).await?, whole))
    }

    /// Prepares tasks that are ready, and writes what came of it.
    async fn prepare(&self, ready_tasks: Vec<ReadyTasks>) -> StoreResult<ReconcileProgress> {
        let needs = ready_tasks.iter().flat_map(ReadyTasks::needs).collect::<BTreeSet<JobId>>();
        let of_all = self.stepper.results(needs.into_iter().collect()).await?;
        let (mut progress, mut steps, mut bytes) = (ReconcileProgress::Nothing, Vec::new(), 0);
        for tasks in ready_tasks {
            let of_one;
            let needed = if tasks.is_enough(&of_all) {
                &of_all
            } else {
                of_one = self.stepper.results(tasks.needs()).await?;
                &of_one
            };
            let ReadyTasks { run, definition, ready, requests } = tasks;
            let ready: Vec<&RunTask> = ready.iter().collect();
            let step = step_of_tasks(&self.stepper.context(&definition, &run), &ready, needed);
            bytes += step.data_bytes();
            steps.push(Decided { step: RunStep { reconciled: requests, ..step }, run });
            if bytes >= self.options.written_bytes_max {
                bytes = 0;
                progress = progress.and(self.stepper.carry_out(std::mem::take(&mut steps)).await?);
            }
        }
        Ok(progress.and(self.stepper.carry_out(steps).await?))
    }

    async fn runs_of(&self, requests: &[RunRequests]) -> StoreResult<HashMap<RunId, Run>> {
        let runs = self.stepper.store.get_runs(requests.iter().map(|(run, _)| *run).collect()).await?;
        Ok(runs.into_iter().map(|run| (run.id, run)).collect())
    }

    /// Reads a run with all its tasks and lets the core decide.
    async fn reconcile_run(
        &self,
        id: RunId,
        requests: Vec<ReconcileRequest>,
    ) -> StoreResult<ReconcileProgress> {
        let Some((run, tasks)) = self.stepper.store.read_run(id).await? else {
            return Ok(ReconcileProgress::Made);
        };
        let definition = self.stepper.definitions.of_run(&run).await?;
        let context = self.stepper.context(&definition, &run);
        let found = context.review(&tasks);
        let needed = self.stepper.results(needs_of_review(&definition.graph, &tasks, &found)).await?;
        let step = RunStep { reconciled: requests, ..step_of_review(&context, &tasks, &found, &needed) };
        self.stepper.carry_out(vec![Decided { run, step }]).await
    }

    /// Marks tasks that wait for too long.
    pub async fn find_stalls(&self, now: Timestamp) -> StoreResult<()> {
        for run in self.stepper.store.stalling_runs(now, self.options.stalls_len_max).await? {
            self.reconcile_run(run, Vec::new()).await?;
        }
        Ok(())
    }
}

/// A run, and what was requested for it.
type RunRequests = (RunId, Vec<ReconcileRequest>);

/// The same of a run that is to be read as a whole, behind the number of its jobs.
type WholeRunRequests = (u32, RunRequests);

/// A run, and which of its requested tasks are ready.
struct ReadyTasks {
    run: Run,
    definition: Arc<Definition>,
    ready: Vec<RunTask>,
    requests: Vec<ReconcileRequest>,
}

impl ReadyTasks {
    fn needs(&self) -> Vec<JobId> {
        needs_in_order(&self.definition.graph, &self.ready)
    }

    fn is_enough(&self, needed: &ParentResults) -> bool {
        self.ready.iter().all(|task| needed.is_enough_for(&self.definition.graph, task))
    }
}

#[cfg(test)]
mod tests {
    use tickwheel_core::ports::{
        Claim, Creation, JobStore as _, RunStore as _, SessionStore as _, StartRun, WorkflowStore as _,
        Workflows as _,
    };
    use tickwheel_core::retry::Jitter;
    use tickwheel_core::settle::{Outcome, PoisonRule, decide};
    use tickwheel_core::workflow::{RunStatus, TaskSpec, TriggerRule};
    use tickwheel_core::{Job, JsonText, State};
    use tickwheel_testkit::fixtures::{at, run_id, session, session_id, task_spec, workflow};

    use super::*;
    use crate::tests::{Services, services};
    use crate::wake_up;

    struct Bench {
        services: Services,
        reconciler: WorkflowReconciler,
        run: RunId,
    }

    /// A run of `load`, which runs after `extract` however that ends.
    async fn bench() -> Bench {
        let services = services();
        services.store.open_session(session(1, at(60_000))).await.unwrap();
        let load = TaskSpec { rule: TriggerRule::AllDone, ..task_spec("load", ["extract"]) };
        let etl = workflow("etl").spec(|spec| spec.tasks.push(load)).build();
        services.store.put_workflow(etl).await.unwrap();
        let start = StartRun {
            tenant: "default".into(),
            workflow: "etl".into(),
            id: run_id(at(0), 1),
            input: JsonText::empty_object(),
            job_id: None,
            idempotency: None,
        };
        let run = match services.workflows.start(start).await.unwrap() {
            Creation::Created(run) => run.id,
            other => panic!("{other:?}"),
        };
        let reconciler = WorkflowReconciler {
            options: ReconcilerOptions::default(),
            watch: StoreWatch::default(),
            stepper: services.run_stepper.clone(),
            wake_ups: wake_up::channel().1,
            turn: None,
        };
        Bench { services, reconciler, run }
    }

    impl Bench {
        /// Reconciles until there is nothing to do.
        async fn reconcile(&mut self) {
            while self.reconciler.run_once().await.unwrap() == ReconcileProgress::Made {}
        }

        /// Claims the one task that waits for its time, and completes it.
        async fn complete_next(&self) {
            let store = &self.services.store;
            let is_waiting = |job: &&Job| job.state() == State::Scheduled;
            let waiting = store
                .with_model(|model| model.live().values().filter(is_waiting).map(|job| job.id).collect());
            let claim = Claim { claimed_by: None, session: session_id(1), jobs: waiting, now: at(10) };
            let taken = store.claim(claim).await.unwrap();
            assert_eq!(taken.len(), 1);
            let outcome = Outcome::Completed { result: None };
            let settlement = decide(&taken[0], outcome, at(20), &PoisonRule::default(), Jitter::NONE);
            store.settle(settlement.into_iter().collect()).await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_task_that_counts_do_not_release_is_released_and_the_run_ends_with_its_last() {
        let mut bench = bench().await;
        bench.services.listening.wait_for([ReconcileRequest::id_of_run(bench.run)]);
        bench.reconcile().await;
        bench.services.listening.heard();

        bench.complete_next().await;
        bench.reconcile().await;
        let heard = bench.services.listening.heard();
        assert_eq!((heard.planner.len(), heard.clients.len()), (1, 0), "the second task waits for its time");

        bench.complete_next().await;
        bench.reconcile().await;
        assert_eq!(bench.services.listening.heard().clients, [ReconcileRequest::id_of_run(bench.run)]);
        let run = bench.services.store.get_runs(vec![bench.run]).await.unwrap().remove(0);
        assert_eq!(run.progress.status, RunStatus::Completed);
        assert_eq!(bench.reconciler.run_once().await.unwrap(), ReconcileProgress::Nothing);
    }
}
