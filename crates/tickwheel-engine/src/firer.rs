//! Fires schedules: at its time each one is read, decided on by [`plan`](tickwheel_core::schedule::plan), and written.
//!
//! ```text
//!  agenda (core): which, when ──ids──▶ read ──▶ plan (core) ──▶ cancel, advance ──jobs──▶ planner
//!      ▲                                                            │
//!      └────────────────── look again then ◀────────────────────────┘
//! ```
//! Nothing is remembered between two steps but when to look: a step reads the schedule as it is, and the store writes only if that is
//! still so. Two nodes, or two lives of one node, that decide on the same firing make one job.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tickwheel_core::change::Change;
use tickwheel_core::id::IdMap;
use tickwheel_core::ports::{Advanced, Clock, DueSchedule, ScheduleStep, Scheduler, Store, StoreResult};
use tickwheel_core::schedule::agenda::{Agenda, JobsMade};
use tickwheel_core::schedule::backfill::{self, Span};
use tickwheel_core::schedule::plan::{Around, Calendars, QUEUE_LEN_MAX, plan};
use tickwheel_core::schedule::{Exclusion, Fire, Overlap, Schedule};
use tickwheel_core::{JobId, ScheduleId, Timestamp};
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::alarm::Alarm;
use crate::announcer::{Announcer, scheduled};
use crate::metrics;
use crate::store_watch::StoreWatch;

/// After a step that somebody else was faster with, how long until it is looked at again.
const RETRY_DELAY: Duration = Duration::from_millis(200);
/// A store that takes longer than this for one answer was away.
const STALL_MIN: Duration = Duration::from_secs(10);
/// A schedule that cannot be understood is looked at again after this.
const UNREADABLE_DELAY: Duration = Duration::from_secs(60);
/// After this time the clock is asked again, whatever it said before: it may have been set.
const WAIT_MAX: Duration = Duration::from_secs(1);
/// Decisions take no longer than this in a row, but for the last of them, before others on the thread have their turn.
const THINKING_MAX: Duration = Duration::from_millis(2);
/// So many steps bring any schedule up to date: a year of seconds.
const STEPS_MAX: usize = 1_600;
const INBOX_LEN_MAX: usize = 4_096;

/// What the schedule timer is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// A schedule is to be looked at then.
    Learned(DueSchedule),
    /// A schedule is gone.
    Forgotten(ScheduleId),
    /// A job of it is over: a firing may have waited for that.
    JobEnded(ScheduleId),
}

/// Where the schedule timer is told things. Not `Clone`: the [`Announcer`] has it, and is told what happened.
pub struct ScheduleTimerHandle(mpsc::Sender<Message>);

impl ScheduleTimerHandle {
    /// A handle and what the loop reads from.
    pub fn new() -> (Self, mpsc::Receiver<Message>) {
        let (sender, inbox) = mpsc::channel(INBOX_LEN_MAX);
        (Self(sender), inbox)
    }

    /// A schedule was created or changed.
    pub async fn changed(&self, schedule: &Schedule) {
        let message = match when_to_look(schedule) {
            Some(due) => Message::Learned(due),
            None => Message::Forgotten(schedule.id),
        };
        let _ = self.0.send(message).await;
    }

    /// A schedule is gone.
    pub async fn forgotten(&self, id: ScheduleId) {
        let _ = self.0.send(Message::Forgotten(id)).await;
    }

    /// A job of a schedule is over. A hint: if there is no room for it, the store is looked at soon enough.
    pub fn job_ended(&self, id: ScheduleId) {
        let _ = self.0.try_send(Message::JobEnded(id));
    }
}

/// When a schedule is to be looked at, if ever.
fn when_to_look(schedule: &Schedule) -> Option<DueSchedule> {
    Some(DueSchedule {
        id: schedule.id,
        partition: schedule.partition,
        wake_at: schedule.progress.wake_at?,
        priority: schedule.spec.job.priority,
    })
}

/// What the store does not do at the moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct StoreAway {
    to_load: bool,
    to_fire: bool,
}

/// See the module.
pub struct Firer {
    pub store: Arc<dyn Store>,
    pub watch: StoreWatch,
    pub clock: Arc<dyn Clock>,
    pub stepper: Stepper,
    pub alarm: Alarm,
    pub agenda: Agenda,
    /// What the store did not do when it was asked for it last.
    pub away: StoreAway,
}

impl Firer {
    /// Runs until every handle is gone.
    pub async fn run(mut self, mut inbox: mpsc::Receiver<Message>) {
        // Firings that wait for a job of theirs to end.
        let mut held: IdMap<ScheduleId, DueSchedule> = IdMap::default();
        loop {
            if !self.away.to_load && !self.away.to_fire {
                self.agenda.watch(self.clock.now());
            }
            self.load().await;
            while self.fire_due(&mut held).await {}
            metrics::agenda(self.agenda.len(), self.agenda.catching_up());
            self.alarm.set(Instant::now() + self.clock.until(self.agenda.next_wake()).min(WAIT_MAX));
            tokio::select! {
                message = inbox.recv() => match message {
                    Some(message) => self.take_in(message, &mut held),
                    None => return,
                },
                () = self.alarm.rings() => {}
            }
            while let Ok(message) = inbox.try_recv() {
                self.take_in(message, &mut held);
            }
        }
    }

    fn take_in(&mut self, message: Message, held: &mut IdMap<ScheduleId, DueSchedule>) {
        let now = self.clock.now();
        match message {
            Message::Learned(due) => {
                held.remove(&due.id);
                self.agenda.learn(due, now);
            }
            Message::Forgotten(id) => {
                held.remove(&id);
                self.agenda.forget(id);
            }
            Message::JobEnded(id) => {
                if let Some(due) = held.remove(&id) {
                    self.agenda.learn(DueSchedule { wake_at: now, ..due }, now);
                }
            }
        }
    }

    async fn load(&mut self) {
        while let Some(load) = self.agenda.wants(self.clock.now()) {
            let asked = Instant::now();
            match self.store.load_schedules(load).await {
                Ok(found) => {
                    self.watch.succeeded("load_schedules");
                    let was_away = std::mem::take(&mut self.away.to_load);
                    self.store_answered(asked, was_away);
                    self.agenda.loaded(&load, found, self.clock.now());
                }
                // What is still wanted is overdue: without a wait the loop would come back at once.
                Err(error) => {
                    self.away.to_load = true;
                    return self.watch.wait_after("load_schedules", &error).await;
                }
            }
        }
    }

    /// What came due while the store was away, or did not answer for a long time, was missed. One that takes its time is busy, and so are we.
    fn store_answered(&mut self, asked: Instant, was_away: bool) {
        let now = self.clock.now();
        if self.away.to_fire {
            // Whoever cannot fire does not look, whatever he reads.
            return;
        }
        if was_away || asked.elapsed() > STALL_MIN {
            self.agenda.watch(now);
        } else {
            self.agenda.kept_watch(now);
        }
    }

    /// Deals with one batch of what is due; `false` if nothing was.
    async fn fire_due(&mut self, held: &mut IdMap<ScheduleId, DueSchedule>) -> bool {
        let now = self.clock.now();
        // One of them shows whether the store fires again; if so, the others were missed.
        let ids = if self.away.to_fire { self.agenda.take_up_to(1, now) } else { self.agenda.take(now) };
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
                self.away.to_fire = true;
                // The sweep brings them back. Whether anything was written is read then.
                self.watch.wait_after("fire", &error).await;
                ids.iter().for_each(|id| self.agenda.forget(*id));
                return false;
            }
        };
        let was_away = std::mem::take(&mut self.away.to_fire);
        self.store_answered(asked, was_away);
        let now = self.clock.now();
        for id in ids {
            let after = stepped.remove(&id).unwrap_or_default();
            if let Some(due) = after.again.filter(|_| after.held) {
                held.insert(id, due);
            }
            self.agenda.done(id, after.again, after.made, now);
        }
        true
    }
}

/// What became of a step.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stepped {
    /// When to look at the schedule again.
    pub again: Option<DueSchedule>,
    /// A firing waits for a job to end.
    pub held: bool,
    /// The jobs it made.
    pub made: JobsMade,
    /// It got on, and there may be more to decide on at once.
    pub got_on: bool,
}

/// Reads schedules, decides, writes. Used by the loop, and by whoever changes a schedule and wants it up to date first.
#[derive(Clone)]
pub struct Stepper {
    pub store: Arc<dyn Store>,
    pub scheduler: Arc<dyn Scheduler>,
    pub announcer: Announcer,
}

/// A decision, on its way to the store.
struct Decided {
    schedule: Schedule,
    step: ScheduleStep,
    made: JobsMade,
}

impl Stepper {
    /// Brings a schedule up to date, however many steps that takes.
    pub async fn bring_up_to_date(&self, id: ScheduleId, now: Timestamp) -> StoreResult<()> {
        for _ in 0..STEPS_MAX {
            if !self.step(vec![id], now).await?.get(&id).is_some_and(|stepped| stepped.got_on) {
                break;
            }
        }
        Ok(())
    }

    /// Lets these schedules get on, as far as one step goes. One that is not in the answer is gone.
    pub async fn step(
        &self,
        ids: Vec<ScheduleId>,
        now: Timestamp,
    ) -> StoreResult<IdMap<ScheduleId, Stepped>> {
        let schedules = self.store.get_schedules(ids).await?;
        let active = self.active_jobs(&schedules).await?;
        let calendars = self.calendars(&schedules).await?;
        let (mut decided, mut stepped) = (Vec::new(), IdMap::default());
        let mut thinking_since = Instant::now();
        for schedule in schedules {
            if thinking_since.elapsed() > THINKING_MAX {
                tokio::task::yield_now().await;
                thinking_since = Instant::now();
            }
            let id = schedule.id;
            let active = active.get(&id).map_or(&[][..], Vec::as_slice);
            let own_calendars = calendars.get(&schedule.tenant).unwrap_or(&NO_CALENDARS);
            match self.decide(schedule, active, own_calendars, now).await? {
                Ok(decision) => decided.push(decision),
                Err(again) => drop(stepped.insert(id, Stepped { again: Some(again), ..Stepped::default() })),
            }
        }
        self.write(decided, now, &mut stepped).await?;
        Ok(stepped)
    }

    async fn decide(
        &self,
        schedule: Schedule,
        active: &[JobId],
        calendars: &Calendars,
        now: Timestamp,
    ) -> StoreResult<Result<Decided, DueSchedule>> {
        let timetable = match schedule.spec.timetable() {
            Ok(timetable) => timetable,
            Err(error) => {
                tracing::error!(schedule_id = %schedule.id, %error, "a stored schedule makes no sense, it does not fire");
                return Ok(Err(look_again(&schedule, now + UNREADABLE_DELAY)));
            }
        };
        let ledger = match backfill::span(&schedule, &timetable, calendars, now) {
            Some(span) => self.recorded(&schedule, &span).await?,
            None => Vec::new(),
        };
        let queued = match schedule.progress.held_at {
            Some(first) => self.store.queued_firings(schedule.id, first, QUEUE_LEN_MAX).await?,
            None => Vec::new(),
        };
        let around = Around { now, active, calendars, ledger: &ledger, queued: &queued };
        let plan = plan(&schedule, &timetable, around);
        for job_id in &plan.cancel {
            if let Err(error) = self.scheduler.change(*job_id, Change::Cancel).await {
                tracing::warn!(%error, %job_id, schedule_id = %schedule.id, "could not cancel the job to be replaced");
                return Ok(Err(look_again(&schedule, now + RETRY_DELAY)));
            }
        }
        let late = plan.late_jobs();
        let step = plan.into_step(&schedule, now, || JobId::from_uuid(Uuid::now_v7()));
        let made = JobsMade { all: u32::try_from(step.jobs.len()).unwrap_or(u32::MAX), late };
        Ok(Ok(Decided { schedule, step, made }))
    }

    async fn recorded(&self, schedule: &Schedule, span: &Span) -> StoreResult<Vec<Fire>> {
        match span.firings.last() {
            Some(last) => self.store.fires_within(schedule.id, span.after, *last).await,
            None => Ok(Vec::new()),
        }
    }

    async fn write(
        &self,
        decided: Vec<Decided>,
        now: Timestamp,
        stepped: &mut IdMap<ScheduleId, Stepped>,
    ) -> StoreResult<()> {
        let (to_write, unchanged): (Vec<_>, Vec<_>) =
            decided.into_iter().partition(|decision| decision.step.progress != decision.schedule.progress);
        for decision in unchanged {
            stepped.insert(decision.schedule.id, decision.outcome());
        }
        if to_write.is_empty() {
            return Ok(());
        }
        let asked = Instant::now();
        let written = self.store.advance_schedules(to_write.iter().map(|d| d.step.clone()).collect()).await?;
        metrics::commit("fire", to_write.len(), asked.elapsed());
        let mut new = Vec::new();
        for (decision, written) in to_write.iter().zip(written) {
            let id = decision.schedule.id;
            match written {
                Advanced::Done => {
                    decision.step.fires.iter().for_each(|fire| metrics::fired(fire, now));
                    new.extend(decision.step.jobs.iter().filter_map(scheduled));
                    stepped.insert(id, decision.outcome());
                }
                Advanced::Stale => {
                    let again = Some(look_again(&decision.schedule, now + RETRY_DELAY));
                    stepped.insert(id, Stepped { again, ..Stepped::default() });
                }
            }
        }
        metrics::submitted(new.len());
        self.announcer.jobs_scheduled(new).await;
        Ok(())
    }

    async fn active_jobs(&self, schedules: &[Schedule]) -> StoreResult<IdMap<ScheduleId, Vec<JobId>>> {
        let ids: Vec<ScheduleId> =
            schedules.iter().filter(|s| s.spec.overlap != Overlap::Allow).map(|s| s.id).collect();
        let mut active: IdMap<ScheduleId, Vec<JobId>> = IdMap::default();
        if !ids.is_empty() {
            for (schedule_id, job_id) in self.store.active_jobs(ids).await? {
                active.entry(schedule_id).or_default().push(job_id);
            }
        }
        Ok(active)
    }

    /// The calendars a schedule may refer to.
    pub async fn calendars_of(&self, schedule: &Schedule) -> StoreResult<Calendars> {
        let mut all = self.calendars(std::slice::from_ref(schedule)).await?;
        Ok(all.remove(&schedule.tenant).unwrap_or_default())
    }

    async fn calendars(&self, schedules: &[Schedule]) -> StoreResult<HashMap<Arc<str>, Calendars>> {
        let uses_one = |s: &&Schedule| s.spec.exclude.iter().any(|e| matches!(e, Exclusion::Calendar(_)));
        let tenants: BTreeSet<Arc<str>> =
            schedules.iter().filter(uses_one).map(|s| s.tenant.clone()).collect();
        let mut all = HashMap::new();
        for tenant in tenants {
            let calendars = self.store.list_calendars(&tenant).await?;
            all.insert(
                tenant,
                calendars.into_iter().map(|calendar| (calendar.name.clone(), calendar)).collect(),
            );
        }
        Ok(all)
    }
}

static NO_CALENDARS: std::sync::LazyLock<Calendars> = std::sync::LazyLock::new(Calendars::new);

fn look_again(schedule: &Schedule, wake_at: Timestamp) -> DueSchedule {
    DueSchedule {
        id: schedule.id,
        partition: schedule.partition,
        wake_at,
        priority: schedule.spec.job.priority,
    }
}

impl Decided {
    fn outcome(&self) -> Stepped {
        let progress = self.step.progress;
        Stepped {
            again: progress.wake_at.map(|wake_at| look_again(&self.schedule, wake_at)),
            held: progress.waits_for_a_job(),
            made: self.made,
            got_on: progress.cursor > self.schedule.progress.cursor,
        }
    }
}
