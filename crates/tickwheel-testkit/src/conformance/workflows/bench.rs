//! What the rules for workflows share: the store on a bench, runs on their way, and the steps that rules have it carry
//! out.

use std::collections::BTreeSet;
use std::sync::Arc;

use tickwheel_core::parents::Parents;
use tickwheel_core::ports::{
    Creation, RunAdvanced, RunQuery, RunStart, Settled, SettledBatch, StepEffects, Store,
};
use tickwheel_core::settle::Settlement;
use tickwheel_core::workflow::{ReconcileRequest, Run, RunStep, RunTask, TaskChange};
use tickwheel_core::{Job, JobId, RunId, State};
use tokio::task::JoinSet;

use super::super::store::bench::{Bench, answered, completes, list_all};
use super::super::store::dependencies::as_answered;
use crate::fixtures::{RunBuilder, at};

/// When steps are taken: after everything that the moves with jobs do.
pub const STEP_AT: tickwheel_core::Timestamp = at(60_000);

/// A store, the moves with runs, and those with jobs.
pub struct RunBench {
    pub store: Arc<dyn Store>,
    pub jobs: Bench,
}

/// All the store tells of a run: what a step that is refused must not change.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    pub run: Option<(Run, Vec<RunTask>)>,
    pub jobs: Vec<Job>,
    pub reconcile_requests: Vec<ReconcileRequest>,
}

impl RunBench {
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { jobs: Bench::new(store.clone()), store }
    }

    /// Stored; no reconcile request is left.
    pub async fn start(&self, builder: RunBuilder) -> RunStart {
        let start = builder.build();
        assert_eq!(answered(self.store.start_run(start.clone()).await), Creation::created(start.run.clone()));
        self.clear_reconcile_requests().await;
        start
    }

    pub async fn find(&self, id: RunId) -> Option<Run> {
        let mut found = answered(self.store.get_runs(vec![id]).await);
        assert!(found.len() <= 1, "one run an id");
        found.pop()
    }

    pub async fn run(&self, id: RunId) -> Run {
        self.find(id).await.expect("the run exists")
    }

    pub async fn tasks(&self, id: RunId) -> Vec<RunTask> {
        answered(self.store.read_run(id).await).expect("the run exists").1
    }

    /// Everything on the list, by id.
    pub async fn reconcile_requests(&self) -> Vec<ReconcileRequest> {
        let mut reconcile_requests = answered(self.store.reconcile_requests(None, 10_000).await);
        reconcile_requests.sort_by_key(|request| request.id);
        reconcile_requests
    }

    /// What is on the list.
    pub async fn requested_ids(&self) -> BTreeSet<JobId> {
        self.reconcile_requests().await.into_iter().map(|request| request.id).collect()
    }

    /// Takes everything off the list.
    pub async fn clear_reconcile_requests(&self) {
        for request in self.reconcile_requests().await {
            let run = self.run(request.run()).await;
            let step = RunStep { reconciled: vec![request], ..RunStep::nothing(&run, STEP_AT) };
            self.done(step).await;
        }
        assert_eq!(self.reconcile_requests().await, []);
    }

    pub async fn advance(&self, step: RunStep) -> RunAdvanced {
        let mut answers = answered(self.store.advance_runs(vec![step]).await);
        assert_eq!(answers.len(), 1, "one answer a step");
        answers.remove(0)
    }

    /// A step that has to be valid.
    pub async fn done(&self, step: RunStep) -> StepEffects {
        match self.advance(step).await {
            RunAdvanced::Done(effects) => {
                for job in &effects.scheduled {
                    as_answered(&self.jobs, job).await;
                }
                effects
            }
            RunAdvanced::Stale => panic!("the revision is the right one"),
        }
    }

    /// A step of the run as it is now that does nothing yet.
    pub async fn step(&self, run: RunId) -> RunStep {
        RunStep::nothing(&self.run(run).await, STEP_AT)
    }

    /// Carries out changes of jobs.
    pub async fn change<const N: usize>(&self, run: RunId, changes: [(JobId, TaskChange); N]) -> StepEffects {
        self.done(RunStep { changes: changes.to_vec(), ..self.step(run).await }).await
    }

    /// A task that is scheduled, claimed.
    pub async fn running(&self, id: JobId) -> Job {
        let job = self.jobs.job(id).await;
        self.jobs.start(&job).await
    }

    /// Runs a task and ends it like this.
    pub async fn end(&self, id: JobId, end: impl FnOnce(&Job) -> Settlement) -> SettledBatch {
        let running = self.running(id).await;
        self.settle_all(vec![end(&running)]).await
    }

    /// Ends attempts in one batch, all of which have to be valid.
    pub async fn settle_all(&self, ends: Vec<Settlement>) -> SettledBatch {
        let count = ends.len();
        let batch = answered(self.store.settle(ends).await);
        assert_eq!(batch.settled, vec![Settled::Applied; count]);
        batch
    }

    /// Runs tasks and completes them in batches of three, all batches at once.
    pub async fn complete_at_once(&self, tasks: impl IntoIterator<Item = JobId>) -> Vec<SettledBatch> {
        let mut running = Vec::new();
        for id in tasks {
            running.push(self.running(id).await);
        }
        let mut settling = JoinSet::new();
        for batch in running.chunks(3) {
            let (store, ends) = (self.store.clone(), batch.iter().map(completes).collect());
            settling.spawn(async move { answered(store.settle(ends).await) });
        }
        settling.join_all().await
    }

    pub async fn assert_stands(&self, id: JobId, state: State, open: u32, failed: u32) {
        let job = self.jobs.job(id).await;
        assert_eq!((job.state(), job.parents), (state, Parents { open, failed }));
    }

    /// What a query finds, page by page.
    pub async fn list(&self, query: RunQuery) -> Vec<RunId> {
        let (mut query, mut all) = (query, Vec::new());
        for _ in 0..1_000 {
            let page = answered(self.store.list_runs(query.clone()).await);
            assert!(page.items.len() <= query.limit, "a page has at most {} items", query.limit);
            all.extend(page.items.iter().map(|run| run.id));
            match page.next {
                None => return all,
                next => query.after = next,
            }
        }
        panic!("the list does not end: {query:?}");
    }

    pub async fn picture(&self, id: RunId) -> Picture {
        Picture {
            run: answered(self.store.read_run(id).await),
            jobs: self.jobs.list(list_all()).await,
            reconcile_requests: self.reconcile_requests().await,
        }
    }
}

/// The list of reconcile requests that has these on it and nothing else.
pub fn only<const N: usize>(ids: [JobId; N]) -> BTreeSet<JobId> {
    BTreeSet::from(ids)
}

/// The id of the request for the run as a whole.
pub fn whole(start: &RunStart) -> JobId {
    ReconcileRequest::id_of_run(start.run.id)
}

/// The job of task `index`.
pub fn task(start: &RunStart, index: u32) -> JobId {
    JobId::of_task(start.run.id, index)
}

/// It ends without having run.
pub const fn ends(state: State) -> TaskChange {
    TaskChange::End { state, result: None, error: None }
}
