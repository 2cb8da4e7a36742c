//! A panic ends the process at once, whichever loop or thread it is in: a server without one of them would look alive.
//! Only what a request or a target sets off may panic alone ([`catch_panic`]).

use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::PanicHookInfo;
use std::time::Duration;

use tickwheel_core::catch_panic;

use super::log::LogWriter;

/// How long the last words may take.
const FLUSH_TIME_MAX: Duration = Duration::from_millis(200);

/// From now on, panics are logged and end the process.
pub fn end_process_on_panic(log: LogWriter) {
    std::panic::set_hook(Box::new(move |panic| {
        write_down(panic);
        if !catch_panic::is_caught() {
            log.flush_for(FLUSH_TIME_MAX);
            std::process::abort();
        }
    }));
}

fn write_down(panic: &PanicHookInfo<'_>) {
    let thread = std::thread::current();
    let thread = thread.name().unwrap_or("unnamed");
    let cause = panic.payload_as_str().unwrap_or("something that is no text");
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    let backtrace = Backtrace::capture();
    if backtrace.status() == BacktraceStatus::Captured {
        tracing::error!(thread, cause, place, %backtrace, "panicked");
    } else {
        tracing::error!(thread, cause, place, "panicked");
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::{Command, Stdio};

    use super::*;

    const IN_A_CHILD: &str = "TICKWHEEL_TEST_PANICS";
    const SIGABRT: i32 = 6;

    /// In a process of its own, with a log that nobody writes out.
    #[test]
    fn a_panic_in_any_thread_ends_the_process_and_a_contained_one_does_not() {
        if std::env::var_os(IN_A_CHILD).is_none() {
            let mut child = Command::new(std::env::current_exe().unwrap());
            let test = std::thread::current().name().unwrap().to_owned();
            child.args(["--exact", &test]).env(IN_A_CHILD, "1").stdout(Stdio::null());
            assert_eq!(child.status().unwrap().signal(), Some(SIGABRT));
            return;
        }
        let mut log = LogWriter::default();
        log.write_all(b"this is never written\n").unwrap();
        end_process_on_panic(log);
        assert!(catch_panic::catch_panic(|| panic!("alone")).is_err());
        let _ = std::thread::spawn(|| panic!("on purpose")).join();
        std::process::exit(0);
    }
}
