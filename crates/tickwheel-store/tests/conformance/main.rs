//! The promises of the store ports, kept by every store of this crate.

mod postgres;
mod sqlite;
