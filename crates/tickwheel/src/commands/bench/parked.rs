//! Parked jobs: very many are due and their workers are connected, but none of those asks for work. One more worker
//! does, for a few jobs of its own at a time. How long does it take to give it one? In the machine alone, without a
//! store: this is about its data structures.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::ensure;
use tickwheel_core::id::IdSet;
use tickwheel_core::machine::{Effect, Event, Machine, MachineOptions};
use tickwheel_core::matching::{Class, Demand, Labels, Offer, Route, Skill};
use tickwheel_core::ports::{DueJob, FairShareGroup, PartitionSet};
use tickwheel_core::{JobId, Partition, Priority, SessionId, Timestamp};
use uuid::Uuid;

use super::figure::Figure;

const FOR: Duration = Duration::from_secs(1);
const NOW: Timestamp = Timestamp::from_millis(1_767_225_600_000);
/// Jobs with different routes have queues of their own.
const ROUTES: usize = 100;
const FEW: usize = 10;

/// A machine with parked jobs and a worker of its own.
struct Parked {
    machine: Machine,
    session: SessionId,
    route: Arc<Route>,
    effects: Vec<Effect>,
}

pub(super) fn measure(jobs: usize) -> anyhow::Result<Figure> {
    let mut parked = Parked::new(jobs);
    ensure!(parked.machine.waiting() == jobs, "not all of the jobs are held");
    let (began, mut taken, mut time) = (Instant::now(), 0, Duration::ZERO);
    while began.elapsed() < FOR {
        let few: Vec<DueJob> = (0..FEW).map(|_| due_job(&parked.route)).collect();
        let before = Instant::now();
        taken += parked.take(few)?;
        time += before.elapsed();
    }
    Ok(Figure::Parked { jobs, take_us: time.as_secs_f64() * 1e6 / taken as f64 })
}

impl Parked {
    fn new(jobs: usize) -> Self {
        let options =
            MachineOptions { near_jobs_max: (jobs + FEW) * (ROUTES + 1), ..MachineOptions::default() };
        let machine = Machine::new(options, PartitionSet::ALL, NOW);
        let session = SessionId::from_uuid(Uuid::now_v7());
        let mut parked = Self { machine, session, route: route("served"), effects: Vec::new() };
        let routes: Vec<Arc<Route>> = (0..ROUTES).map(|number| route(&format!("parked-{number}"))).collect();
        parked.handle(Event::RoutesLearned(routes.iter().chain([&parked.route]).cloned().collect()));
        for route in &routes {
            parked.handle(Event::SessionOpened(SessionId::from_uuid(Uuid::now_v7()), offer(route)));
        }
        parked.handle(Event::SessionOpened(session, offer(&parked.route.clone())));
        let all = (0..jobs).map(|number| due_job(&routes[number % ROUTES]));
        parked.handle(Event::Learned(all.collect()));
        parked
    }

    fn handle(&mut self, event: Event) {
        self.effects.clear();
        self.machine.handle(event, NOW, &mut self.effects);
    }

    /// These jobs come due, the worker asks for them, and they are claimed: says how many.
    fn take(&mut self, jobs: Vec<DueJob>) -> anyhow::Result<usize> {
        let count = jobs.len();
        self.handle(Event::Learned(jobs));
        self.handle(Event::DemandChanged(self.session, Demand { jobs_max: count, ..Demand::default() }));
        let claim = self.effects.drain(..).find_map(|effect| match effect {
            Effect::Claim(claim) => Some(claim),
            Effect::Load(_) => None,
        });
        let claimed = claim.as_ref().map_or(0, |claim| claim.jobs.len());
        ensure!(claimed == count, "the worker got {claimed} jobs instead of {count}");
        if let Some(claim) = claim {
            let taken: IdSet<JobId> = claim.jobs.iter().copied().collect();
            self.handle(Event::Claimed { claim, taken });
        }
        Ok(count)
    }
}

fn route(job_type: &str) -> Arc<Route> {
    Arc::new(Route::new("default".into(), Skill::Handler(job_type.into()), Labels::new()))
}

fn offer(route: &Route) -> Arc<Offer> {
    Arc::new(Offer::new(
        vec![route.queue.clone()],
        route.job_type().cloned().into_iter().collect(),
        Labels::new(),
    ))
}

fn due_job(route: &Route) -> DueJob {
    let id = JobId::from_uuid(Uuid::now_v7());
    DueJob {
        id,
        partition: Partition::of(id),
        due_at: NOW,
        priority: Priority::Normal,
        tenant: "default".into(),
        queue: route.queue.clone(),
        group: FairShareGroup::REST,
        class: Class::Worker(route.id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_few_are_taken_and_the_parked_ones_stay() {
        let mut parked = Parked::new(500);
        let few: Vec<DueJob> = (0..FEW).map(|_| due_job(&parked.route)).collect();
        assert_eq!(parked.take(few).unwrap(), FEW);
        assert_eq!(parked.machine.waiting(), 500);
    }
}
