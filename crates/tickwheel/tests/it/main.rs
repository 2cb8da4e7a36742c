//! Tests of the whole program, in one binary: what it says about itself, how it behaves as a client, and (with real
//! stores) how it behaves as a server.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod api;
mod chaos;
mod cli_client;
mod cli_config;
mod cli_help;
mod config_reference;
mod eventually;
mod fake_server;
mod golden;
mod program;
mod server;
mod target;
