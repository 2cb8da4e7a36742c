//! The engine on the model store, with a target that does what a test tells it: every loop, and every way the store can
//! fail.

#![allow(clippy::unwrap_used)]

mod bench;
mod every_verb;
mod failing_store;
mod lifecycle;
mod redrives;
mod schedules;
mod stopping;
mod workflows;
