//! What the engine does with what attempts say beside how they ended, without an engine: it goes straight to the store.

use async_trait::async_trait;
use futures::FutureExt as _;
use tickwheel_core::JobId;
use tickwheel_core::log::LogAppend;
use tickwheel_core::once::{OnceAnswer, OnceCall, OnceReport, OnceReported};
use tickwheel_core::ports::{
    AttemptLogStore, AttemptNotes, LogFollower, OnceStore, ProgressStore, SchedulerError,
};
use tickwheel_core::progress::Progress;
use tickwheel_testkit::ModelStore;

/// See the module.
pub struct StraightNotes(pub ModelStore);

/// Hears nothing, as if all lines came through another server.
struct Deaf;

#[async_trait]
impl LogFollower for Deaf {
    async fn new_lines(&self) {
        std::future::pending().await
    }
}

#[async_trait]
impl AttemptNotes for StraightNotes {
    async fn append_logs(&self, appends: Vec<LogAppend>) -> Result<Vec<bool>, SchedulerError> {
        Ok(self.0.append_logs(appends).await?)
    }

    async fn append_last_lines(&self, appends: Vec<LogAppend>) {
        let _ = self.0.append_logs(appends).await;
    }

    fn follow(&self, _: JobId) -> Option<Box<dyn LogFollower>> {
        Some(Box::new(Deaf))
    }

    fn note_progress(&self, notes: Vec<Progress>) {
        let _ = self.0.put_progress(notes).now_or_never();
    }

    async fn ask_once(&self, call: OnceCall) -> Result<OnceAnswer, SchedulerError> {
        Ok(self.0.ask_once(call).await?)
    }

    async fn report_once(&self, report: OnceReport) -> Result<OnceReported, SchedulerError> {
        Ok(self.0.report_once(report).await?)
    }
}
