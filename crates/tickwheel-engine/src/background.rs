//! Runs the loops, and ends the process if one of them ends.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::task::AbortHandle;

use crate::host::Host;

/// The loops, and whether they are supposed to go on.
#[derive(Default)]
pub struct Loops {
    host: Host,
    stopping: Arc<AtomicBool>,
    handles: Vec<AbortHandle>,
}

impl Loops {
    /// None yet.
    pub fn new(host: Host) -> Self {
        Self { host, stopping: Arc::default(), handles: Vec::new() }
    }

    /// Runs a loop. If it ends before it is stopped, whether by a panic or not, so does the process: half an engine
    /// would look alive and do nothing. Another process takes over what this one had.
    pub fn start(&mut self, name: &'static str, work: impl Future<Output = ()> + Send + 'static) {
        let task = self.host.spawn(work);
        self.handles.push(task.abort_handle());
        let stopping = self.stopping.clone();
        self.host.spawn(async move {
            let as_told = match task.await {
                Ok(()) => stopping.load(Ordering::Acquire),
                Err(error) => error.is_cancelled(),
            };
            if !as_told {
                tracing::error!(name, "a loop has ended, so the process ends too");
                std::process::abort();
            }
        });
    }

    /// Ends them all.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.handles.iter().for_each(AbortHandle::abort);
    }
}

/// Loops end by themselves when nobody holds the engine any more.
impl Drop for Loops {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::{Command, Stdio};

    use super::*;

    const IN_A_CHILD: &str = "TICKWHEEL_TEST_LOOP";
    const SIGABRT: i32 = 6;

    /// In a process of its own: how that ended.
    fn ends_by(how: &str) -> Option<i32> {
        let mut child = Command::new(std::env::current_exe().unwrap());
        let test = std::thread::current().name().unwrap().to_owned();
        child.args(["--exact", &test]).env(IN_A_CHILD, how).stdout(Stdio::null()).stderr(Stdio::null());
        child.status().unwrap().signal()
    }

    #[test]
    fn a_loop_that_ends_unasked_takes_the_process_with_it() {
        let Some(how) = std::env::var_os(IN_A_CHILD) else {
            assert_eq!(ends_by("panic"), Some(SIGABRT));
            assert_eq!(ends_by("return"), Some(SIGABRT));
            assert_eq!(ends_by("stop"), None);
            return;
        };
        tokio::runtime::Runtime::new().unwrap().block_on(async move {
            let mut loops = Loops::default();
            match how.to_str().unwrap() {
                "panic" => loops.start("test", async { panic!("on purpose") }),
                "return" => loops.start("test", async {}),
                _ => loops.start("test", std::future::pending()),
            }
            if how == "stop" {
                loops.stop();
                return;
            }
            std::future::pending::<()>().await;
        });
    }
}
