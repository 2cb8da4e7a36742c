//! A program that is a launcher and nothing else.

use std::process::ExitCode;

fn main() -> ExitCode {
    tickwheel_executor::launcher::run_if_asked().unwrap_or(ExitCode::FAILURE)
}
