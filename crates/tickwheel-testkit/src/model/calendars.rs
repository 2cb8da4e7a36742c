//! Days that schedules share.

use tickwheel_core::schedule::Calendar;

use super::Model;

impl Model {
    /// Stores a calendar, in place of one of that name.
    pub fn put_calendar(&mut self, calendar: Calendar) {
        self.calendars.insert((calendar.tenant.clone(), calendar.name.clone()), calendar);
    }

    /// The calendars of a tenant, by name.
    pub fn list_calendars(&self, tenant: &str) -> Vec<Calendar> {
        self.calendars.values().filter(|calendar| &*calendar.tenant == tenant).cloned().collect()
    }

    /// Removes a calendar. `false`: there was none.
    pub fn delete_calendar(&mut self, tenant: &str, name: &str) -> bool {
        self.calendars.remove(&(tenant.into(), name.into())).is_some()
    }
}
