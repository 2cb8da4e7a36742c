//! For tests: the receiving ends of an announcer, and who heard what.

use futures::FutureExt;
use futures::future::BoxFuture;
use tickwheel_core::machine::Event;
use tickwheel_core::{JobId, TargetKind};
use tokio::sync::mpsc;

use crate::announcer::{Announcer, Listeners};
use crate::loops::{planner, schedule_runner};
use crate::waiters::Waiters;
use crate::wake_up::{self, WakeUpReceiver};
use crate::worker_board::WorkerBoard;

/// The receiving ends.
pub struct Listening {
    pub planner: mpsc::Receiver<planner::Message>,
    pub schedule_timer: mpsc::Receiver<schedule_runner::Message>,
    pub waiters: Waiters,
    pub callbacks: WakeUpReceiver,
    pub reconciler: WakeUpReceiver,
    clients: Vec<(JobId, BoxFuture<'static, ()>)>,
}

/// Who heard what.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// As text: an event cannot be compared.
    pub planner: Vec<String>,
    pub schedule_timer: Vec<schedule_runner::Message>,
    /// The jobs of which a client heard that they ended.
    pub clients: Vec<JobId>,
    pub callbacks: bool,
    pub reconciler: bool,
}

/// An announcer for a node that runs HTTP targets, and everybody who hears it.
pub fn listening() -> (Announcer, Listening) {
    let (planner, handle, planner_inbox) = planner::channel([TargetKind::Http].into());
    let (schedule_timer, schedule_inbox) = schedule_runner::ScheduleTimerHandle::new();
    let (callbacks, callback_wake_ups) = wake_up::channel();
    let (reconciler, reconciler_wake_ups) = wake_up::channel();
    let waiters = Waiters::default();
    let listening = Listening {
        planner: planner_inbox,
        schedule_timer: schedule_inbox,
        waiters: waiters.clone(),
        callbacks: callback_wake_ups,
        reconciler: reconciler_wake_ups,
        clients: Vec::new(),
    };
    let workers = WorkerBoard::new(handle);
    (
        Announcer::new(Listeners { planner, schedule_timer, waiters, callbacks, reconciler, workers }),
        listening,
    )
}

impl Listening {
    /// A client waits for the end of each of these.
    pub fn wait_for(&mut self, jobs: impl IntoIterator<Item = JobId>) {
        self.clients.extend(jobs.into_iter().map(|id| (id, self.waiters.end_of(id).boxed())));
    }

    /// What was heard since the last time.
    pub fn heard(&mut self) -> Heard {
        let mut heard = Heard {
            callbacks: self.callbacks.received().now_or_never().is_some(),
            reconciler: self.reconciler.received().now_or_never().is_some(),
            ..Heard::default()
        };
        while let Ok(planner::Message::Event(event)) = self.planner.try_recv() {
            heard.planner.push(format!("{event:?}"));
        }
        while let Ok(message) = self.schedule_timer.try_recv() {
            heard.schedule_timer.push(message);
        }
        self.clients.retain_mut(|(id, end)| {
            let has_ended = end.as_mut().now_or_never().is_some();
            heard.clients.extend(has_ended.then_some(*id));
            !has_ended
        });
        heard
    }
}

/// How [`Heard`] shows events.
pub fn shown<const N: usize>(events: [Event; N]) -> Vec<String> {
    events.iter().map(|event| format!("{event:?}")).collect()
}
