//! Tests of the whole program, in one binary: what it says about itself, how it behaves as a client, and (with real
//! stores) how it behaves as a server.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod api;
mod chaos;
mod cli_backfill;
mod cli_client;
mod cli_config;
mod cli_help;
mod cli_schedules;
mod cli_workflows;
mod config_reference;
mod docs;
mod docs_cron;
mod e2e;
mod e2e_backfill;
mod e2e_bad_input;
mod e2e_callback_receivers;
mod e2e_callbacks;
mod e2e_changes;
mod e2e_cli;
mod e2e_costly_schedules;
mod e2e_cron;
mod e2e_dead_letters;
mod e2e_declared;
mod e2e_dependencies;
mod e2e_fairness;
mod e2e_lease;
mod e2e_log;
mod e2e_memory;
mod e2e_operations;
mod e2e_reads;
mod e2e_reports;
mod e2e_retries;
mod e2e_schedules;
mod e2e_submit;
mod e2e_switches;
mod e2e_targets;
mod e2e_time;
mod e2e_web_pages;
mod e2e_workflow_cli;
mod e2e_workflow_failures;
mod e2e_workflow_fan_out;
mod e2e_workflow_removal;
mod e2e_workflow_schedules;
mod e2e_workflows;
mod eventually;
mod fake_server;
mod golden;
mod ledger;
mod program;
mod server;
mod target;
mod wall_clock;
mod workflows;
