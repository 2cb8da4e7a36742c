//! The REST API in process: the real router on the in-memory model of the store.
//!
//! The scheduler here writes straight to the store; what the engine makes of it is tested where the engine is.

mod attempt_notes;
mod attempts;
mod backfills;
mod bad_input;
mod batch;
mod calendars;
mod changes;
mod connections;
mod cron;
mod dead_letters;
mod dependencies;
mod golden;
mod jobs;
mod logs;
mod once;
mod operations;
mod redrive_service;
mod schedule_changes;
mod schedule_preview;
mod schedule_put;
mod schedule_service;
mod schedules;
mod server;
mod worker_service;
mod workers;
mod workflow_runs;
mod workflow_service;
mod workflows;
