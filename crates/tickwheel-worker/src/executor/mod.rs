//! Whoever runs an attempt: one room for each kind of target.
//!
//! Each implements [`tickwheel_core::ports::Executor`] and keeps its promises: in time, stopped by being dropped, never
//! the same attempt twice.

mod http;

pub use http::{HttpExecutor, HttpExecutorOptions};
