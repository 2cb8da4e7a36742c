//! Keeps the gauges of waiting and running jobs current.
//!
//! What waits is counted by the store too: this node does not hold what nobody could run, nor what is paused.
//!
//! The page of metrics stays small however many queues there are: so many have series of their own, the others are
//! counted together. A queue keeps its series for as long as the process lives, so that no series comes and goes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tickwheel_core::ports::{Clock, ControlStore, DUE_COUNT_MAX};

use tokio::time::Instant;

use crate::loops::planner::PlannerHandle;
use crate::metrics;
use crate::running::Running;
use crate::worker_board::WorkerBoard;

/// How the loop behaves.
#[derive(Clone, Copy, Debug)]
pub struct GaugesOptions {
    /// How often the gauges are set.
    pub interval: Duration,
    /// Counting takes one part in this many of the time at the most.
    pub duty_parts: u32,
    /// The longest pause.
    pub pause_max: Duration,
}

impl Default for GaugesOptions {
    fn default() -> Self {
        Self { interval: Duration::from_secs(1), duty_parts: 20, pause_max: Duration::from_secs(60) }
    }
}

/// Queues with series of their own.
const NAMED_LEN_MAX: usize = 200;
/// The series of all others. A queue of this name is one of them.
const OTHER: &str = "other";

/// See the module.
pub struct Gauges {
    pub options: GaugesOptions,
    pub store: Arc<dyn ControlStore>,
    pub clock: Arc<dyn Clock>,
    pub planner: PlannerHandle,
    pub running: Running,
    pub workers: WorkerBoard,
    pub named: Named,
}

impl Gauges {
    /// Updates for ever.
    pub async fn run(mut self) {
        loop {
            let began = Instant::now();
            self.run_once().await;
            let pause = self.options.interval.max(began.elapsed() * self.options.duty_parts);
            tokio::time::sleep(pause.min(self.options.pause_max)).await;
        }
    }

    /// Sets every gauge once.
    pub async fn run_once(&mut self) {
        let mut loads: BTreeMap<Arc<str>, Load> = BTreeMap::new();
        add(&mut loads, self.planner.snapshot().await.waiting, |load| &mut load.waiting);
        add(&mut loads, self.running.by_queue(), |load| &mut load.running);
        add(&mut loads, self.workers.by_queue(), |load| &mut load.running);
        self.count_waiting(&mut loads).await;
        metrics::workers(self.workers.len());
        for (queue, load) in self.named.series(&loads) {
            metrics::queue(&queue, load.waiting, load.running);
        }
    }

    /// A store that does not answer leaves the gauges with what this node knows.
    async fn count_waiting(&self, loads: &mut BTreeMap<Arc<str>, Load>) {
        let known = self.store.list_queues().await.unwrap_or_default();
        let names: Vec<String> = known.into_iter().map(|queue| queue.name).collect();
        let counts = self.store.count_due(names.clone(), self.clock.now(), DUE_COUNT_MAX).await;
        for (name, count) in names.into_iter().zip(counts.unwrap_or_default()) {
            let load = loads.entry(name.into()).or_default();
            load.waiting = count.at_least(load.waiting).jobs;
        }
    }
}

/// What a queue has to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Load {
    waiting: u64,
    running: u64,
}

fn add(
    loads: &mut BTreeMap<Arc<str>, Load>,
    counts: HashMap<Arc<str>, u64>,
    field: fn(&mut Load) -> &mut u64,
) {
    for (queue, count) in counts {
        *field(loads.entry(queue).or_default()) += count;
    }
}

/// The queues with series of their own.
#[derive(Debug, Default)]
pub struct Named {
    queues: BTreeSet<Arc<str>>,
    /// There was a queue beyond them.
    others: bool,
}

impl Named {
    fn has_room(&self) -> bool {
        self.queues.len() < NAMED_LEN_MAX
    }

    /// What to show. A queue that has become empty is shown as zero, not left at its last figure.
    fn series(&mut self, loads: &BTreeMap<Arc<str>, Load>) -> Vec<(Arc<str>, Load)> {
        self.admit(loads);
        let load_of = |queue: &Arc<str>| loads.get(queue).copied().unwrap_or_default();
        let mut series: Vec<_> = self.queues.iter().map(|queue| (queue.clone(), load_of(queue))).collect();
        let rest = loads.iter().filter(|(queue, _)| !self.queues.contains(*queue));
        let mut other = Load::default();
        for (_, load) in rest {
            self.others = true;
            other.waiting += load.waiting;
            other.running += load.running;
        }
        if self.others {
            series.push((OTHER.into(), other));
        }
        series
    }

    /// Gives series to new queues, the busiest first, while there is room.
    fn admit(&mut self, loads: &BTreeMap<Arc<str>, Load>) {
        if !self.has_room() {
            return;
        }
        let is_new = |queue: &Arc<str>| **queue != *OTHER && !self.queues.contains(queue);
        let mut new: Vec<_> = loads.iter().filter(|(queue, _)| is_new(queue)).collect();
        new.sort_by_key(|(_, load)| std::cmp::Reverse(load.waiting + load.running));
        new.truncate(NAMED_LEN_MAX - self.queues.len());
        self.queues.extend(new.into_iter().map(|(queue, _)| queue.clone()));
    }
}

#[cfg(test)]
mod tests {
    use tickwheel_core::Target;
    use tickwheel_core::ports::JobStore;
    use tickwheel_testkit::fixtures::{at, job_numbered};
    use tickwheel_testkit::model::Verb;
    use tickwheel_testkit::{Fault, ManualClock, ModelStore};

    use super::*;
    use crate::loops::planner;

    fn loads<'q>(queues: impl IntoIterator<Item = (&'q str, u64)>) -> BTreeMap<Arc<str>, Load> {
        queues.into_iter().map(|(queue, waiting)| (queue.into(), Load { waiting, running: 1 })).collect()
    }

    fn waiting(series: &[(Arc<str>, Load)], queue: &str) -> Option<u64> {
        series.iter().find(|(name, _)| **name == *queue).map(|(_, load)| load.waiting)
    }

    fn gauges(store: Arc<ModelStore>, running: Running) -> Gauges {
        let (_, planner, _) = planner::channel([].into());
        Gauges {
            options: GaugesOptions::default(),
            store,
            clock: Arc::new(ManualClock::at(at(0))),
            workers: WorkerBoard::new(planner.clone()),
            planner,
            running,
            named: Named::default(),
        }
    }

    #[tokio::test]
    async fn queues_of_the_store_and_of_running_attempts_have_series() {
        let store = Arc::new(ModelStore::new());
        let running = Running::default();
        let _attempt = running.start(job_numbered(1).build().id, 1, "busy".into());
        let mut gauges = gauges(store.clone(), running);
        gauges.run_once().await;
        assert_eq!(gauges.named.queues, BTreeSet::from(["busy".into()]));
        store.set_queue_paused("paused", true).await.unwrap();
        gauges.run_once().await;
        assert_eq!(gauges.named.queues, BTreeSet::from(["busy".into(), "paused".into()]));
    }

    #[tokio::test]
    async fn what_nobody_could_run_is_counted_too() {
        let store = Arc::new(ModelStore::new());
        let jobs = [1, 2].map(|number| job_numbered(number).target(Target::Worker).queue("q").build_new());
        store.submit_jobs(jobs.into()).await.unwrap();
        let gauges = gauges(store.clone(), Running::default());
        let mut loads = loads([("q", 1), ("elsewhere", 3)]);
        gauges.count_waiting(&mut loads).await;
        assert_eq!(["q", "elsewhere"].map(|queue| loads[queue].waiting), [2, 3]);
        store.fail(Verb::CountDue, Fault::Aborted);
        gauges.count_waiting(&mut loads).await;
        assert_eq!(loads["q"].waiting, 2);
    }

    #[test]
    fn few_queues_are_all_shown_also_when_they_are_empty() {
        let mut named = Named::default();
        assert_eq!(named.series(&loads([("a", 3), ("b", 5)])).len(), 2);
        let series = named.series(&loads([("b", 7)]));
        assert_eq!(series.len(), 2);
        assert_eq!((waiting(&series, "a"), waiting(&series, "b")), (Some(0), Some(7)));
    }

    #[test]
    fn of_many_queues_the_busiest_are_shown_and_the_others_together() {
        let mut named = Named::default();
        let names: Vec<String> = (0..20_000).map(|n| format!("q{n}")).collect();
        let many = loads(names.iter().map(|name| (name.as_str(), 1)).chain([("busy", 9), (OTHER, 4)]));
        for _ in 0..3 {
            let series = named.series(&many);
            assert_eq!(series.len(), NAMED_LEN_MAX + 1);
            assert_eq!(waiting(&series, "busy"), Some(9));
            let total: u64 = series.iter().map(|(_, load)| load.waiting).sum();
            assert_eq!(total, 20_000 + 9 + 4);
        }
        assert_eq!(waiting(&named.series(&BTreeMap::new()), OTHER), Some(0));
    }
}
