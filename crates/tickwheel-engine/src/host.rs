//! What the engine takes from the machine it runs on, apart from the time of day: tasks, threads, punctual alarms,
//! chance and fresh ids. No other file of this crate spawns tasks.
//!
//! There are two hosts: the process itself, and a simulation, which has many engines in one thread, stops them at will,
//! and does the same again for the same seed.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use tickwheel_core::catch_panic::catch_panic;
use tickwheel_core::retry::Jitter;
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::alarm::Alarm;

/// A task that a simulation is given to run.
pub type SimulatedTask = Pin<Box<dyn Future<Output = ()> + Send>>;

/// See the module. Clones are the same.
#[derive(Clone, Default)]
pub enum Host {
    /// This process.
    #[default]
    Process,
    /// A node of a simulated cluster.
    Simulated(Arc<dyn SimulatedNode>),
}

/// A node of a simulated cluster. Time is the runtime's, which has to be paused.
pub trait SimulatedNode: Send + Sync {
    /// Runs a task for as long as the node lives.
    fn spawn(&self, task: SimulatedTask) -> JoinHandle<()>;

    /// Bits that follow from the seed.
    fn random_bits(&self) -> u64;

    /// An id that no other has, and that follows from the seed.
    fn fresh_uuid(&self) -> Uuid;
}

impl Host {
    /// Runs `task` beside everything else.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        match self {
            Self::Process => tokio::spawn(task),
            Self::Simulated(node) => node.spawn(Box::pin(task)),
        }
    }

    /// Does work that takes long, beside the threads that others wait for. `None`: it panicked.
    pub async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        match self {
            Self::Process => tokio::task::spawn_blocking(|| catch_panic(work)).await.ok()?.ok(),
            Self::Simulated(_) => catch_panic(work).ok(),
        }
    }

    /// An alarm that is not set.
    pub fn alarm(&self) -> io::Result<Alarm> {
        match self {
            Self::Process => Alarm::with_thread(),
            Self::Simulated(_) => Ok(Alarm::of_runtime()),
        }
    }

    /// Where in its range something falls that is not to happen everywhere at once.
    pub fn jitter(&self) -> Jitter {
        Jitter::from_bits(match self {
            Self::Process => rand::random(),
            Self::Simulated(node) => node.random_bits(),
        })
    }

    /// An id that no other has, and that sorts by the moment at which it was made.
    pub fn fresh_uuid(&self) -> Uuid {
        match self {
            Self::Process => Uuid::now_v7(),
            Self::Simulated(node) => node.fresh_uuid(),
        }
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Process => "Process",
            Self::Simulated(_) => "Simulated",
        })
    }
}
