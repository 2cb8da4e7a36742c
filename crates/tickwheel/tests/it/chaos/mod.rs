//! The real program under load while the worst happens to it, and what must be true all the same.
//!
//! [`load`] submits without pause and writes down what was acknowledged; a test does harm meanwhile; [`evidence`] compares what
//! was acknowledged, what the server says and what the target saw.

mod connections;
mod crash;
mod drain;
mod evidence;
mod freeze;
mod kills;
mod load;
mod two_servers;
mod workflows;
