//! The tasks of a simulated process: they stand still together, and end together.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tickwheel_engine::SimulatedTask;
use tokio::task::{AbortHandle, JoinHandle};

use crate::cluster::SharedCluster;

/// With so many tasks a process forgets those that have ended.
const PRUNED_AT: usize = 100;

/// See the module. Clones are the same.
#[derive(Clone)]
pub struct Tasks {
    cluster: SharedCluster,
    frozen: Arc<Mutex<Frozen>>,
    running: Arc<Mutex<Vec<AbortHandle>>>,
}

#[derive(Default)]
struct Frozen {
    is_frozen: bool,
    /// Tasks that wanted to go on meanwhile.
    waiting: Vec<Waker>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tasks {
    pub fn new(cluster: SharedCluster) -> Self {
        Self { cluster, frozen: Arc::default(), running: Arc::default() }
    }

    pub fn spawn(&self, task: SimulatedTask) -> JoinHandle<()> {
        let running = tokio::spawn(ProcessTask { tasks: self.clone(), task });
        let mut tasks = lock(&self.running);
        if tasks.len() >= PRUNED_AT {
            tasks.retain(|task| !task.is_finished());
        }
        tasks.push(running.abort_handle());
        running
    }

    /// The process is gone.
    pub fn end(&self) {
        lock(&self.running).drain(..).for_each(|task| task.abort());
    }

    pub fn are_frozen(&self) -> bool {
        lock(&self.frozen).is_frozen
    }

    pub fn freeze(&self) {
        lock(&self.frozen).is_frozen = true;
    }

    /// They go on as if nothing had happened.
    pub fn thaw(&self) {
        let mut frozen = lock(&self.frozen);
        frozen.is_frozen = false;
        let waiting = std::mem::take(&mut frozen.waiting);
        drop(frozen);
        waiting.into_iter().for_each(Waker::wake);
    }
}

/// One of them.
struct ProcessTask {
    tasks: Tasks,
    task: SimulatedTask,
}

impl Future for ProcessTask {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        {
            let mut frozen = lock(&self.tasks.frozen);
            if frozen.is_frozen {
                frozen.waiting.push(context.waker().clone());
                return Poll::Pending;
            }
        }
        match catch_unwind(AssertUnwindSafe(|| self.task.as_mut().poll(context))) {
            Ok(poll) => poll,
            Err(panic) => {
                let what = panic.downcast_ref::<String>().cloned();
                let what = what.or_else(|| panic.downcast_ref::<&str>().map(|what| (*what).to_owned()));
                let what = format!("a process panicked: {}", what.unwrap_or_default());
                self.tasks.cluster.lock().violated("I0", what);
                Poll::Pending
            }
        }
    }
}
