//! Runs schedules: takes those that are due from the schedule timer, steps them, and puts them back.
//!
//! ```text
//!  schedule timer (core): which, when ──ids──▶ step ──▶ read, plan (core), write ──jobs──▶ announcer
//!      ▲                                        │
//!      └──────────── next step then ◀───────────┘
//! ```
//! Nothing is remembered between two steps but when the next is wanted: see [`ScheduleStepper`].

use std::sync::Arc;
use std::time::Duration;

use tickwheel_core::id::IdMap;
use tickwheel_core::ports::{Clock, DueSchedule, PartitionSet, ScheduleStore};
use tickwheel_core::schedule::Schedule;
use tickwheel_core::schedule::timer::ScheduleTimer;
use tickwheel_core::{ScheduleId, Timestamp};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::alarm::Alarm;
use crate::metrics;
use crate::schedule_stepper::ScheduleStepper;
use crate::store_watch::StoreWatch;

const INBOX_LEN_MAX: usize = 4_096;

/// What the schedule timer is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// A schedule wants its next step then.
    Learned(DueSchedule),
    /// A schedule is gone.
    Forgotten(ScheduleId),
    /// A job of it is over: a firing may have waited for that.
    JobEnded(ScheduleId),
    /// This node owns these partitions now.
    OwnershipChanged(PartitionSet),
}

/// Where the schedule timer is told things. Not `Clone`: the [`Announcer`](crate::announcer::Announcer) has it, and is
/// told what happened.
pub struct ScheduleTimerHandle(mpsc::Sender<Message>);

impl ScheduleTimerHandle {
    /// A handle and what the loop reads from.
    pub fn new() -> (Self, mpsc::Receiver<Message>) {
        let (sender, inbox) = mpsc::channel(INBOX_LEN_MAX);
        (Self(sender), inbox)
    }

    /// A schedule was created or changed.
    pub async fn changed(&self, schedule: &Schedule) {
        let message = match next_wake(schedule) {
            Some(due) => Message::Learned(due),
            None => Message::Forgotten(schedule.id),
        };
        let _ = self.0.send(message).await;
    }

    /// A schedule is gone.
    pub async fn forgotten(&self, id: ScheduleId) {
        let _ = self.0.send(Message::Forgotten(id)).await;
    }

    /// This node owns these partitions now.
    pub async fn ownership_changed(&self, partitions: PartitionSet) {
        let _ = self.0.send(Message::OwnershipChanged(partitions)).await;
    }

    /// A job of a schedule is over. If there is no room for it, the next load finds it.
    pub fn job_ended(&self, id: ScheduleId) {
        let _ = self.0.try_send(Message::JobEnded(id));
    }
}

/// When a schedule wants its next step, if ever.
fn next_wake(schedule: &Schedule) -> Option<DueSchedule> {
    Some(DueSchedule {
        id: schedule.id,
        partition: schedule.partition,
        wake_at: schedule.progress.wake_at?,
        priority: schedule.spec.job.priority,
    })
}

/// How the loop behaves.
#[derive(Clone, Copy, Debug)]
pub struct ScheduleRunnerOptions {
    /// A store that takes longer than this for one answer was away.
    pub stall_min: Duration,
    /// After this time the clock is asked again, whatever it said before: it may have been set.
    pub wait_max: Duration,
}

impl Default for ScheduleRunnerOptions {
    fn default() -> Self {
        Self { stall_min: Duration::from_secs(10), wait_max: Duration::from_secs(1) }
    }
}

/// What the runner remembers between two rounds.
pub struct ScheduleRunnerState {
    timer: ScheduleTimer,
    /// What the store did not do when it was asked for it last.
    away: StoreAway,
    /// Firings that wait for a job of theirs to end.
    held: IdMap<ScheduleId, DueSchedule>,
}

impl ScheduleRunnerState {
    /// Nothing but what this timer knows.
    pub fn new(timer: ScheduleTimer) -> Self {
        Self { timer, away: StoreAway::default(), held: IdMap::default() }
    }
}

/// What the store does not do at the moment.
#[derive(Clone, Copy, Debug, Default)]
struct StoreAway {
    to_load: bool,
    to_fire: bool,
}

/// See the module.
pub struct ScheduleRunner {
    pub options: ScheduleRunnerOptions,
    pub store: Arc<dyn ScheduleStore>,
    pub watch: StoreWatch,
    pub clock: Arc<dyn Clock>,
    pub stepper: ScheduleStepper,
    pub alarm: Alarm,
    pub state: ScheduleRunnerState,
}

impl ScheduleRunner {
    /// Runs until every handle is gone.
    pub async fn run(mut self, mut inbox: mpsc::Receiver<Message>) {
        loop {
            self.run_once(self.clock.now()).await;
            let wait = self.clock.until(self.state.timer.next_wake());
            self.alarm.set(Instant::now() + wait.min(self.options.wait_max));
            tokio::select! {
                // Whatever comes first: the other is not lost, and both lead to the next round.
                biased;
                message = inbox.recv() => match message {
                    Some(message) => self.take_in(message, self.clock.now()),
                    None => return,
                },
                () = self.alarm.rings() => {}
            }
            while let Ok(message) = inbox.try_recv() {
                self.take_in(message, self.clock.now());
            }
        }
    }

    /// Loads what comes near and steps what is due. It starts at `now`; after each answer of the store the clock is
    /// asked again.
    pub async fn run_once(&mut self, now: Timestamp) {
        if !self.state.away.to_load && !self.state.away.to_fire {
            self.state.timer.watch(now);
        }
        self.load().await;
        while self.fire_due().await {}
        metrics::schedule_timer(self.state.timer.len(), self.state.timer.catching_up());
    }

    fn take_in(&mut self, message: Message, now: Timestamp) {
        let ScheduleRunnerState { timer, held, .. } = &mut self.state;
        match message {
            Message::Learned(due) => {
                held.remove(&due.id);
                timer.learn(due, now);
            }
            Message::Forgotten(id) => {
                held.remove(&id);
                timer.forget(id);
            }
            Message::JobEnded(id) => {
                if let Some(due) = held.remove(&id) {
                    timer.learn(DueSchedule { wake_at: now, ..due }, now);
                }
            }
            Message::OwnershipChanged(partitions) => {
                held.retain(|_, due| partitions.contains(due.partition));
                timer.change_ownership(partitions, now);
            }
        }
    }

    async fn load(&mut self) {
        while let Some(load) = self.state.timer.wants(self.clock.now()) {
            let asked = Instant::now();
            match self.store.load_schedules(load).await {
                Ok(found) => {
                    self.watch.succeeded("load_schedules");
                    let was_away = std::mem::take(&mut self.state.away.to_load);
                    self.store_answered(asked, was_away);
                    self.state.timer.loaded(&load, found, self.clock.now());
                }
                // What is still wanted is overdue: without a wait the loop would come back at once.
                Err(error) => {
                    self.state.away.to_load = true;
                    return self.watch.wait_after("load_schedules", &error).await;
                }
            }
        }
    }

    /// What came due while the store was away, or did not answer for a long time, was missed. One that takes its time
    /// is busy, and so are we.
    fn store_answered(&mut self, asked: Instant, was_away: bool) {
        let now = self.clock.now();
        if self.state.away.to_fire {
            // Whoever cannot fire keeps no watch, whatever it reads.
            return;
        }
        if was_away || asked.elapsed() > self.options.stall_min {
            self.state.timer.watch(now);
        } else {
            self.state.timer.kept_watch(now);
        }
    }

    /// Deals with one batch of what is due; `false` if nothing was.
    async fn fire_due(&mut self) -> bool {
        let now = self.clock.now();
        let timer = &mut self.state.timer;
        // One of them shows whether the store fires again; if so, the others were missed.
        let ids = if self.state.away.to_fire { timer.take_up_to(1, now) } else { timer.take(now) };
        if ids.is_empty() {
            return false;
        }
        let asked = Instant::now();
        let mut stepped = match self.stepper.step(ids.clone(), now).await {
            Ok(stepped) => {
                self.watch.succeeded("fire");
                stepped
            }
            Err(error) => {
                self.state.away.to_fire = true;
                // The sweep brings them back. Whether anything was written is read then.
                self.watch.wait_after("fire", &error).await;
                ids.iter().for_each(|id| self.state.timer.forget(*id));
                return false;
            }
        };
        let was_away = std::mem::take(&mut self.state.away.to_fire);
        self.store_answered(asked, was_away);
        let now = self.clock.now();
        for id in ids {
            let after = stepped.remove(&id).unwrap_or_default();
            if let Some(due) = after.again.filter(|_| after.held) {
                self.state.held.insert(id, due);
            }
            self.state.timer.done(id, after.again, after.made, now);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use tickwheel_core::change::Change;
    use tickwheel_core::machine::Event;
    use tickwheel_core::ports::{DueJob, JobStore as _, PartitionSet, ScheduleStore as _};
    use tickwheel_core::schedule::Overlap;
    use tickwheel_core::schedule::timer::ScheduleTimerOptions;
    use tickwheel_testkit::fixtures::{at, schedule_numbered};
    use tickwheel_testkit::model::Verb;
    use tickwheel_testkit::{Fault, ManualClock, ModelStore};

    use super::*;
    use crate::announcer::tests::listening::{Listening, shown};
    use crate::host::Host;
    use crate::tests::services;

    struct Bench {
        store: Arc<ModelStore>,
        clock: ManualClock,
        runner: ScheduleRunner,
        listening: Listening,
    }

    /// A runner on a store with this schedule.
    async fn bench(schedule: &Schedule) -> Bench {
        let services = services();
        let (store, clock) = (services.store, services.clock);
        store.create_schedule(schedule.clone()).await.unwrap();
        let (scheduler, announcer) = (services.scheduler, services.announcer);
        let timer = ScheduleTimer::new(ScheduleTimerOptions::default(), PartitionSet::ALL, at(0));
        let runner = ScheduleRunner {
            options: ScheduleRunnerOptions::default(),
            store: store.clone(),
            watch: StoreWatch::default(),
            clock: Arc::new(clock.clone()),
            stepper: ScheduleStepper { host: Host::default(), store: store.clone(), scheduler, announcer },
            alarm: Alarm::with_thread().unwrap(),
            state: ScheduleRunnerState::new(timer),
        };
        Bench { store, clock, runner, listening: services.listening }
    }

    impl Bench {
        /// One round at that time.
        async fn run_at(&mut self, ms: i64) {
            self.clock.set(at(ms));
            self.runner.run_once(at(ms)).await;
        }

        /// What waits or runs.
        fn jobs(&self) -> Vec<DueJob> {
            self.store.with_model(|model| model.live().values().map(DueJob::from).collect())
        }
    }

    #[tokio::test]
    async fn a_schedule_fires_once_at_its_time() {
        let mut bench = bench(&schedule_numbered(1, "* * * * *").build()).await;
        for ms in [0, 59_000, 59_999] {
            bench.run_at(ms).await;
            assert_eq!(bench.jobs(), []);
        }
        bench.run_at(60_000).await;
        let jobs = bench.jobs();
        assert_eq!(jobs.len(), 1);
        assert_eq!(bench.listening.heard().planner, shown([Event::Learned(jobs.clone())]));
        bench.run_at(60_001).await;
        assert_eq!(bench.jobs(), jobs);
    }

    #[tokio::test]
    async fn a_firing_that_waits_for_a_job_goes_on_when_it_hears_of_its_end() {
        let schedule = schedule_numbered(1, "* * * * *").overlap(Overlap::Queue).build();
        let mut bench = bench(&schedule).await;
        for ms in [59_999, 60_000, 119_999, 120_000] {
            bench.run_at(ms).await;
        }
        let jobs = bench.jobs();
        assert_eq!(jobs.len(), 1, "the second waits for the first");
        bench.store.change_job(jobs[0].id, Change::Cancel, at(120_001)).await.unwrap();
        bench.runner.take_in(Message::JobEnded(schedule.id), at(120_001));
        bench.run_at(120_001).await;
        let after = bench.jobs();
        assert!(after.len() == 1 && after[0].id != jobs[0].id);
    }

    #[tokio::test]
    async fn a_firing_that_could_not_be_written_is_found_again() {
        let mut bench = bench(&schedule_numbered(1, "* * * * *").build()).await;
        bench.run_at(59_999).await;
        bench.store.fail(Verb::AdvanceSchedules, Fault::Aborted);
        bench.run_at(60_000).await;
        assert_eq!(bench.jobs(), []);
        for ms in [61_000, 62_000, 63_000] {
            bench.run_at(ms).await;
        }
        assert_eq!(bench.jobs().len(), 1);
    }
}
