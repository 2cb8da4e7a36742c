//! The engine's service for what attempts say beside how they ended: log lines, progress, effects that happen once.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tickwheel_core::JobId;
use tickwheel_core::log::LogAppend;
use tickwheel_core::once::{OnceAnswer, OnceCall, OnceReport, OnceReported};
use tickwheel_core::ports::{AttemptNotes, LogFollower, OnceStore, SchedulerError};
use tickwheel_core::progress::Progress;

use crate::followers::Followers;
use crate::loops::log_writer::LogWriterHandle;
use crate::loops::progress_writer::LatestProgress;
use crate::metrics;

/// How long the end of an attempt waits for the attempt's last lines.
const LAST_LINES_WAIT: Duration = Duration::from_secs(2);

/// See the module.
pub struct AttemptNoteService {
    pub store: Arc<dyn OnceStore>,
    pub logs: LogWriterHandle,
    pub followers: Followers,
    pub progress: LatestProgress,
}

#[async_trait]
impl AttemptNotes for AttemptNoteService {
    async fn append_logs(&self, appends: Vec<LogAppend>) -> Result<Vec<bool>, SchedulerError> {
        self.logs.append(appends).await
    }

    async fn append_last_lines(&self, appends: Vec<LogAppend>) {
        let lines: usize = appends.iter().map(|append| append.lines.len()).sum();
        if lines == 0 {
            return;
        }
        // What is still on its way after that is written in its own time.
        if let Ok(Err(_)) = tokio::time::timeout(LAST_LINES_WAIT, self.logs.append(appends)).await {
            metrics::log_lines_dropped(lines);
        }
    }

    fn follow(&self, id: JobId) -> Option<Box<dyn LogFollower>> {
        self.followers.follow(id)
    }

    fn note_progress(&self, notes: Vec<Progress>) {
        self.progress.note(notes);
    }

    async fn ask_once(&self, call: OnceCall) -> Result<OnceAnswer, SchedulerError> {
        Ok(self.store.ask_once(call).await?)
    }

    async fn report_once(&self, report: OnceReport) -> Result<OnceReported, SchedulerError> {
        Ok(self.store.report_once(report).await?)
    }
}
