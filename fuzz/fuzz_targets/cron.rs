//! Whatever the fuzzer makes up goes through the check of this name.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| tickwheel_checks::cron::check(data));
