//! Between the words of the wire and the terms of the core. The only place that knows both.

mod answer;
mod backfill;
mod calendar;
mod cron;
mod order;
mod schedule_answer;
mod schedule_order;
mod words;

pub use answer::{attempt, dead_letter, job, why};
pub use backfill::{SurveyedRange, backfill, backfill_order, bad_range};
pub use calendar::{calendar, calendar_summary, new_calendar, preview_calendar};
pub use cron::{local_time, preview_cron};
pub use order::{Submission, edit, failed, new_job, payload, priority, state, timestamp};
pub use schedule_answer::{fire, next_fire, schedule, timetable};
pub use schedule_order::{new_schedule, patched, trigger};
pub use words::fire_outcome;
