//! The one program. Everything it does is in the library beside it, where tests can reach it.

use std::process::ExitCode;

use tikv_jemallocator::Jemalloc;

/// Gives memory back that is not used any more, where the C library keeps it (docs/adr/0024-memory-goes-back.md).
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> ExitCode {
    // For each command that a job runs, the server starts this program again to look after it.
    tickwheel_executor::launcher::run_if_asked().unwrap_or_else(tickwheel::run)
}
