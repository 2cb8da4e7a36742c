//! Between the words of the wire and the terms of the core. The only place that knows both.

mod answer;
mod attempt_notes;
mod backfill;
mod calendar;
mod cron;
mod executed_job;
mod job_request;
mod process;
mod redrive;
mod run_answer;
mod schedule_answer;
mod schedule_request;
mod words;
mod worker;
mod workflow_answer;
mod workflow_request;

pub use answer::{attempt, callback, dead_letter, job, status, why};
pub use attempt_notes::{log_append, log_line, once_answer, once_scope, progress};
pub use backfill::{SurveyedRange, backfill, backfill_request, bad_range};
pub use calendar::{calendar, calendar_summary, new_calendar, preview_calendar};
pub use cron::{local_time, preview_cron};
pub use executed_job::executed_job;
pub use job_request::{Submission, edit, failed, new_job, payload, priority, state, timestamp};
pub use redrive::{redrive, redrive_progress};
pub use run_answer::{RunView, run};
pub use schedule_answer::{fire, next_fire, schedule, timetable};
pub use schedule_request::{new_schedule, patched, trigger};
pub use words::{fire_outcome, run_status};
pub use worker::{POLL_WAIT, assignment, held, new_worker, outcome, poll, span, worker};
pub use workflow_answer::{workflow, workflow_summary};
pub use workflow_request::{bad_input, start_run, workflow_spec};
