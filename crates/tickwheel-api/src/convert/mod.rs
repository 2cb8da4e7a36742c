//! Between the words of the wire and the terms of the core. The only place that knows both.

mod answer;
mod backfill;
mod calendar;
mod cron;
mod order;
mod run_answer;
mod schedule_answer;
mod schedule_order;
mod words;
mod workflow_answer;
mod workflow_order;

pub use answer::{attempt, callback, dead_letter, job, why};
pub use backfill::{SurveyedRange, backfill, backfill_order, bad_range};
pub use calendar::{calendar, calendar_summary, new_calendar, preview_calendar};
pub use cron::{local_time, preview_cron};
pub use order::{Submission, edit, failed, new_job, payload, priority, state, timestamp};
pub use run_answer::{RunView, run};
pub use schedule_answer::{fire, next_fire, schedule, timetable};
pub use schedule_order::{new_schedule, patched, trigger};
pub use words::{fire_outcome, run_status};
pub use workflow_answer::{workflow, workflow_summary};
pub use workflow_order::{bad_input, start_run, workflow_spec};
