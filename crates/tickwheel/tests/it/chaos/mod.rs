//! The real program under load while the worst happens to it, and what must be true all the same.
//!
//! [`load`] submits without pause and writes down what was acknowledged; a test does harm meanwhile; the
//! [checker](crate::checker) compares what was acknowledged, what the server says and what the target saw. The numbers
//! are those of the list of faults to survive.

mod clocks; // 14
mod connections; // 6
mod crash; // 2
mod cut_off; // 4
mod database_restart; // 7
mod drain;
mod freeze; // 3
mod full_disk; // 11
mod held;
mod kills; // 1, 10
mod load;
mod lost_answers; // 5
mod operator;
mod poison; // 18
mod rolling_restart; // 19
mod soak; // 20
mod stall; // 8
mod two_servers;
mod workflows;

pub use connections::end_all_connections;
