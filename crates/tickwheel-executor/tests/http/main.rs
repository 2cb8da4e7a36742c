//! The HTTP executor and the callback sender against real sockets.

// Clippy lets tests unwrap, but not what they call on the way.
#![allow(clippy::unwrap_used)]

mod callback;
mod connections;
mod fixture;
mod guard;
mod limits;
mod request;
mod server;
mod status;
