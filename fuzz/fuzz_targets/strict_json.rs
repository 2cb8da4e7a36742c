//! Passes every input of the fuzzer to the check of this name.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| tickwheel_checks::strict_json::check(data));
