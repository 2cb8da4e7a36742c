//! The promises of the store port, kept by every store of this crate.

mod postgres;
mod sqlite;
