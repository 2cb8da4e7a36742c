//! Calendars: named sets of days on which schedules do not fire.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::document;
use crate::job::words;
use crate::time::Time;

/// How many days a calendar may have.
pub const DAYS_MAX: usize = 10_000;
/// How many calendars there may be.
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

/// A calendar to store. It replaces one of the same name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PutCalendar {
    /// The days: `2026-12-25`, or `2026-12-24/2026-12-31` for a range that includes both. Up to 10,000 days.
    #[serde(default)]
    #[schema(value_type = Vec<document::Days>, max_items = 10000)]
    pub days: Vec<String>,
    /// Weekdays that are excluded as well.
    #[serde(default)]
    pub weekdays: Vec<Weekday>,
}

/// A named set of days.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Calendar {
    /// Its name. A schedule refers to it as `calendar:<name>`.
    pub name: String,
    /// The days, in order.
    #[schema(example = json!(["2026-12-25"]))]
    pub days: Vec<String>,
    /// Weekdays that are excluded as well.
    pub weekdays: Vec<Weekday>,
    /// When it was last changed.
    pub updated_at: Time,
}

/// A calendar in a list, without its days.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CalendarSummary {
    /// Its name.
    pub name: String,
    /// How many days it has.
    pub day_count: usize,
    /// The first day.
    pub first_day: Option<String>,
    /// The last day.
    pub last_day: Option<String>,
    /// Weekdays that are excluded as well.
    pub weekdays: Vec<Weekday>,
    /// When it was last changed.
    pub updated_at: Time,
}

/// The result of an import.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CalendarImport {
    /// The name of the calendar.
    pub name: String,
    /// How many events the file has.
    pub events: usize,
    /// How many of them are cancelled. They are ignored.
    pub cancelled: usize,
    /// How many of them repeat by a rule that is not supported. Only their first occurrence is imported.
    pub repeats_ignored: usize,
    /// How many days the events cover.
    pub days: usize,
    /// How many of these days were not in the calendar before.
    pub added: usize,
    /// How many days the calendar has now.
    pub total: usize,
}
