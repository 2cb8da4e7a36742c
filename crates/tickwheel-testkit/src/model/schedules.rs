//! Schedules: every write is a compare-and-set on the revision, and the revision grows with it.

use tickwheel_core::ports::{
    Advanced, DueSchedule, LoadSchedules, Page, ScheduleCreated, ScheduleQuery, StoreError, StoreResult,
};
use tickwheel_core::schedule::{Fire, Schedule};
use tickwheel_core::{ScheduleId, Timestamp};

use super::Model;
use super::lists::{is_none_or, page};

impl Model {
    /// Stores a schedule unless its tenant has one of that name; refused if its id is taken by one of another name.
    pub fn create_schedule(&mut self, schedule: Schedule) -> StoreResult<ScheduleCreated> {
        if let Some(other) = self.find_schedule(&schedule.tenant, &schedule.name) {
            return Ok(ScheduleCreated::NameTaken(other.id));
        }
        if self.schedules.contains_key(&schedule.id) {
            return Err(StoreError::Aborted(format!("there is a schedule {} already", schedule.id)));
        }
        self.schedules.insert(schedule.id, schedule);
        Ok(ScheduleCreated::Created)
    }

    /// The schedules that exist.
    pub fn get_schedules(&self, ids: &[ScheduleId]) -> Vec<Schedule> {
        ids.iter().filter_map(|id| self.schedules.get(id)).cloned().collect()
    }

    /// The schedule of that name.
    pub fn find_schedule(&self, tenant: &str, name: &str) -> Option<&Schedule> {
        self.schedules.values().find(|schedule| &*schedule.tenant == tenant && &*schedule.name == name)
    }

    /// Schedules by name.
    pub fn list_schedules(&self, query: &ScheduleQuery) -> Page<Schedule, String> {
        let wanted = |schedule: &&Schedule| {
            is_none_or(&query.tenant, |tenant| **tenant == *schedule.tenant)
                && is_none_or(&query.paused, |paused| *paused == schedule.paused)
                && is_none_or(&query.after, |after| *schedule.name > **after)
        };
        let mut found: Vec<&Schedule> = self.schedules.values().filter(wanted).collect();
        found.sort_by_key(|schedule| (&schedule.name, &schedule.tenant));
        page(found, query.limit, |schedule| schedule.name.to_string())
    }

    /// Schedules that are to be woken, in the order of their cursor.
    pub fn load_schedules(&self, load: &LoadSchedules) -> Vec<DueSchedule> {
        let mut due: Vec<DueSchedule> = self.schedules.values().filter_map(due).collect();
        due.retain(|due| {
            load.partitions.contains(due.partition) && due.wake_at <= load.until && due.cursor() > load.after
        });
        due.sort_by_key(DueSchedule::cursor);
        due.truncate(load.limit);
        due
    }

    /// Writes the spec, whether it is paused, and the progress; with it what became of firings meanwhile.
    pub fn change_schedule(&mut self, wanted: Schedule, fires: Vec<Fire>) -> Advanced {
        if self.is_stale(wanted.id, wanted.revision) || self.would_have_a_second_job(&fires) {
            return Advanced::Stale;
        }
        self.schedules.entry(wanted.id).and_modify(|schedule| {
            schedule.spec = wanted.spec;
            schedule.paused = wanted.paused;
            schedule.pause_note = wanted.pause_note;
            schedule.updated_at = wanted.updated_at;
            schedule.progress = wanted.progress;
            schedule.revision += 1;
        });
        fires.into_iter().for_each(|fire| self.record(fire));
        Advanced::Done
    }

    /// Removes a schedule and its ledger; its jobs stay. `false`: there was none.
    pub fn delete_schedule(&mut self, id: ScheduleId) -> bool {
        let ledger = (id, Timestamp::from_millis(i64::MIN))..=(id, Timestamp::MAX);
        self.fires.extract_if(ledger, |_, _| true).for_each(drop);
        self.schedules.remove(&id).is_some()
    }

    pub(super) fn is_stale(&self, id: ScheduleId, revision: u64) -> bool {
        self.schedules.get(&id).is_none_or(|schedule| schedule.revision != revision)
    }
}

fn due(schedule: &Schedule) -> Option<DueSchedule> {
    Some(DueSchedule {
        id: schedule.id,
        partition: schedule.partition,
        wake_at: schedule.progress.wake_at?,
        priority: schedule.spec.job.priority,
    })
}
