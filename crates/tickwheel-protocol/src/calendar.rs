//! Calendars: named sets of days on which schedules do not fire.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::document;
use crate::job::words;
use crate::time::Time;

/// Days that one calendar may name.
pub const DAYS_MAX: usize = 10_000;
/// Calendars there may be.
pub const CALENDARS_MAX: usize = 100;

words! {
    /// A day of the week.
    Weekday {
        /// Sunday.
        Sunday = "sunday",
        /// Monday.
        Monday = "monday",
        /// Tuesday.
        Tuesday = "tuesday",
        /// Wednesday.
        Wednesday = "wednesday",
        /// Thursday.
        Thursday = "thursday",
        /// Friday.
        Friday = "friday",
        /// Saturday.
        Saturday = "saturday",
    }
}

/// A calendar to be stored, in place of one of that name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PutCalendar {
    /// The days: `2026-12-25`, or `2026-12-24/2026-12-31` for all from the first to the last. 10,000 at the most.
    #[serde(default)]
    #[schema(value_type = Vec<document::Days>, max_items = 10000)]
    pub days: Vec<String>,
    /// Weekdays that are excluded too.
    #[serde(default)]
    pub weekdays: Vec<Weekday>,
}

/// A named set of days.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Calendar {
    /// Its name: a schedule refers to it as `calendar:<name>`.
    pub name: String,
    /// The days, in order.
    #[schema(example = json!(["2026-12-25"]))]
    pub days: Vec<String>,
    /// Weekdays that are excluded too.
    pub weekdays: Vec<Weekday>,
    /// When it was last changed.
    pub updated_at: Time,
}

/// A calendar as it is listed: without its days.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CalendarSummary {
    /// Its name.
    pub name: String,
    /// How many days it names.
    pub day_count: usize,
    /// The first of them.
    pub first_day: Option<String>,
    /// The last of them.
    pub last_day: Option<String>,
    /// Weekdays that are excluded too.
    pub weekdays: Vec<Weekday>,
    /// When it was last changed.
    pub updated_at: Time,
}

/// What an import found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CalendarImport {
    /// The calendar.
    pub name: String,
    /// Events in the file.
    pub events: usize,
    /// Of them, those that were cancelled and do not count.
    pub cancelled: usize,
    /// Of them, those that repeat in a way that is not understood: only their first occurrence counts.
    pub repeats_ignored: usize,
    /// Days that the file names.
    pub days: usize,
    /// Of them, those that were not in the calendar before.
    pub added: usize,
    /// Days in the calendar now.
    pub total: usize,
}
