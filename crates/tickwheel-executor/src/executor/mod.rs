//! Whoever runs an attempt: one room for each kind of target.
//!
//! Each implements [`tickwheel_core::ports::Executor`] and keeps its promises: in time, stopped by being dropped, never
//! the same attempt twice.

mod http;
mod process;

pub use http::{HttpExecutor, HttpExecutorOptions};
pub use process::{
    Account, Forbidden, LINE_BYTES_MAX, NoSink, OutputSink, OutputStream, ProcessExecutor,
    ProcessExecutorOptions, ProcessPolicy,
};
