//! Who takes back what a worker had, and as what.

use tickwheel_core::matching::Labels;
use tickwheel_core::ports::{Claim, JobStore, SessionStore, WorkerStore};
use tickwheel_core::worker::WorkerProfile;
use tickwheel_core::{AttemptOutcome, Target};
use tickwheel_testkit::fixtures::{at, job_numbered, session, session_id};
use tickwheel_testkit::model::Verb;
use tickwheel_testkit::{Fault, ManualClock, ModelStore};

use super::*;
use crate::announcer::tests::listening::listening;
use crate::lease::Lease;
use crate::loops::planner;
use crate::loops::reaper::{Reaper, ReaperOptions};
use crate::loops::settler::{Settler, SettlerHandle, SettlerOptions};
use crate::running::Running;
use crate::store_watch::StoreWatch;

const WORKER: u64 = 5;

struct Bench {
    store: Arc<ModelStore>,
    service: Arc<WorkerService>,
    reaper: Reaper,
    job: JobId,
}

/// A worker that runs one job, and a reaper of the node.
async fn bench() -> Bench {
    let store = Arc::new(ModelStore::new());
    store.open_session(session(1, at(3_600_000))).await.unwrap();
    let (settler, unsettled) = SettlerHandle::new(10);
    let settling = Settler {
        options: SettlerOptions::default(),
        host: Host::default(),
        store: store.clone(),
        watch: StoreWatch::default(),
        handle: settler.clone(),
        announcer: listening().0,
    };
    tokio::spawn(settling.run(unsettled));
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::at(at(0)));
    let (_, planner, _) = planner::channel([].into());
    let board = WorkerBoard::new(planner.clone());
    let reports = Reports { store: store.clone(), clock: clock.clone(), settler: settler.clone() };
    let reaper = Reaper {
        options: ReaperOptions::default(),
        store: store.clone(),
        watch: StoreWatch::default(),
        clock: clock.clone(),
        lease: Arc::new(Lease::new(session_id(1), Instant::now() + Duration::from_secs(3_600))),
        running: Running::default(),
        workers: board.clone(),
        settler,
    };
    let service =
        WorkerService { host: Host::default(), store: store.clone(), clock, planner, board, reports };
    let job = job_of_a_new_worker(&store).await;
    Bench { store, service: Arc::new(service), reaper, job }
}

async fn job_of_a_new_worker(store: &ModelStore) -> JobId {
    let profile = WorkerProfile {
        name: "w".into(),
        queues: vec!["default".into()],
        types: vec!["t".into()],
        labels: Labels::new(),
        capacity: 1,
        lease_ms: 15_000,
        executors: Vec::new(),
        library: None,
        host: None,
        pid: None,
    };
    let worker = NewWorker { id: session_id(WORKER), instance: None, profile: Arc::new(profile) };
    store.open_worker(worker, at(0)).await.unwrap();
    let new = job_numbered(1).target(Target::Worker).build_new();
    let id = new.job.id;
    store.submit_jobs(vec![new]).await.unwrap();
    let claim = Claim {
        claimed_by: Some(session_id(WORKER)),
        session: session_id(WORKER),
        jobs: vec![id],
        now: at(0),
    };
    assert_eq!(store.claim(claim).await.unwrap().len(), 1);
    id
}

impl Bench {
    async fn outcomes(&self) -> Vec<Option<AttemptOutcome>> {
        let attempts = self.store.attempts(self.job).await.unwrap().unwrap();
        attempts.iter().map(|attempt| attempt.outcome).collect()
    }
}

/// At whatever moment of it the reaper looks.
#[tokio::test]
async fn what_a_worker_that_leaves_in_order_gives_back_is_never_lost() {
    for verb in [Verb::GetWorker, Verb::HeldBy, Verb::GetJobs, Verb::Settle, Verb::EndWorker] {
        let bench = bench().await;
        bench.store.fail(verb, Fault::Stalled);
        let service = bench.service.clone();
        let leaving =
            tokio::spawn(async move { service.leave(session_id(WORKER), Leaving::Drained).await.unwrap() });
        while !bench.store.is_stalled(verb) {
            tokio::task::yield_now().await;
        }
        bench.reaper.run_once(at(0), &mut Instant::now()).await.unwrap();
        bench.store.release();
        assert!(leaving.await.unwrap());
        assert_eq!(bench.outcomes().await, [Some(AttemptOutcome::Released)], "{verb:?}");
        assert!(!bench.service.leave(session_id(WORKER), Leaving::Drained).await.unwrap());
    }
}
