//! One step of a schedule: read it, let [`plan`](tickwheel_core::schedule::plan) decide, write.
//!
//! A step reads the schedule as it is, and the store writes only if that is still so. Two nodes, or two lives of one
//! node, that decide on the same firing make one job. The [schedule runner](crate::loops::schedule_runner) steps what
//! is due; whoever changes a schedule brings it up to date first.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tickwheel_core::change::Change;
use tickwheel_core::id::IdMap;
use tickwheel_core::ports::{Advanced, DueSchedule, ScheduleStep, Scheduler, Store, StoreResult};
use tickwheel_core::schedule::backfill::{self, FiringSpan};
use tickwheel_core::schedule::plan::{Calendars, PlanContext, QUEUE_LEN_MAX, plan};
use tickwheel_core::schedule::timer::JobsMade;
use tickwheel_core::schedule::{Exclusion, Fire, Overlap, Schedule};
use tickwheel_core::{JobId, ScheduleId, Timestamp};
use tokio::time::Instant;

use crate::announcer::{Announcer, scheduled};
use crate::host::Host;
use crate::metrics;

/// After a step that somebody else was faster with, how long until the next.
const RETRY_DELAY: Duration = Duration::from_millis(200);
/// A schedule that cannot be understood is read again after this.
const UNREADABLE_DELAY: Duration = Duration::from_secs(60);
/// Decisions take no longer than this in a row, but for the last of them, before others on the thread have their turn.
const THINKING_MAX: Duration = Duration::from_millis(2);
/// So many steps bring any schedule up to date: a year of seconds.
const STEPS_MAX: usize = 1_600;

/// What became of a step.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stepped {
    /// When the schedule wants its next step.
    pub again: Option<DueSchedule>,
    /// A firing waits for a job to end.
    pub held: bool,
    /// The jobs it made.
    pub made: JobsMade,
    /// It got on, and there may be more to decide on at once.
    pub got_on: bool,
}

/// See the module.
#[derive(Clone)]
pub struct ScheduleStepper {
    pub host: Host,
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

impl ScheduleStepper {
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
                tracing::error!(schedule_id = %schedule.id, %error, "a stored schedule is not valid and does not fire");
                return Ok(Err(wake_again(&schedule, now + UNREADABLE_DELAY)));
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
        let context = PlanContext { now, active, calendars, ledger: &ledger, queued: &queued };
        let plan = plan(&schedule, &timetable, context);
        for job_id in &plan.cancel {
            if let Err(error) = self.scheduler.change(*job_id, Change::Cancel).await {
                tracing::warn!(%error, %job_id, schedule_id = %schedule.id, "could not cancel the job to be replaced");
                return Ok(Err(wake_again(&schedule, now + RETRY_DELAY)));
            }
        }
        let late = plan.late_jobs();
        let step = plan.into_step(&schedule, now, || JobId::from_uuid(self.host.fresh_uuid()));
        let made = JobsMade { all: u32::try_from(step.jobs.len()).unwrap_or(u32::MAX), late };
        Ok(Ok(Decided { schedule, step, made }))
    }

    async fn recorded(&self, schedule: &Schedule, span: &FiringSpan) -> StoreResult<Vec<Fire>> {
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
                    let again = Some(wake_again(&decision.schedule, now + RETRY_DELAY));
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

fn wake_again(schedule: &Schedule, wake_at: Timestamp) -> DueSchedule {
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
            again: progress.wake_at.map(|wake_at| wake_again(&self.schedule, wake_at)),
            held: progress.waits_for_a_job(),
            made: self.made,
            got_on: progress.cursor > self.schedule.progress.cursor,
        }
    }
}
