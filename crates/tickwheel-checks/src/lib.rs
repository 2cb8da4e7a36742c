//! For tests only: what has to hold whatever somebody hands to a parser.
//!
//! Each module has one function `check(data)`. It feeds `data` to a parser and panics if a property does not hold: two
//! ways to the same answer differ, what was printed does not read back, a bound is exceeded. The fuzzer calls it with
//! inputs that it makes up (`fuzz/fuzz_targets`), `cargo test` with the seeds in `fuzz/seeds`.
//!
//! Deliberately not here: examples with their expected answers. They stand beside the code.

pub mod cron;
pub mod crontab;
pub mod expressions;
pub mod ics;
pub mod strict_json;

/// Panics if a property does not hold for these bytes.
pub type Check = fn(&[u8]);

/// What is checked: the name of the fuzz target and of its folder of seeds, and the check.
pub const CHECKS: [(&str, Check); 5] = [
    ("cron", cron::check),
    ("crontab", crontab::check),
    ("expressions", expressions::check),
    ("ics", ics::check),
    ("strict_json", strict_json::check),
];
