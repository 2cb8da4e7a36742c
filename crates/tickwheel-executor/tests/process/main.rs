//! What the process executor starts, what becomes of it, and that nothing of it is left.

// Clippy lets tests unwrap, but not what they call on the way.
#![allow(clippy::unwrap_used)]

mod ends;
mod fixture;
mod input;
mod limits;
mod output;
mod stopping;
