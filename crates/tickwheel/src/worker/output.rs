//! What commands print, on its way to the logs of their jobs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value};
use tickwheel_core::ports::AttemptContext;
use tickwheel_executor::executor::{OutputSink, OutputStream};
use tickwheel_worker::{Ctx, LogLevel};

/// The attempts whose commands run, by token. The library bounds what it keeps of their lines.
#[derive(Default)]
pub(super) struct JobLogs(Mutex<HashMap<String, Ctx>>);

impl JobLogs {
    /// Lines of the attempt go to its log until what this returns is dropped.
    pub fn open(self: Arc<Self>, ctx: &Ctx) -> OpenLog {
        let token = ctx.token().to_owned();
        self.lock().insert(token.clone(), ctx.clone());
        OpenLog { logs: self, token }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Ctx>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OutputSink for JobLogs {
    fn line(&self, attempt: &AttemptContext, stream: OutputStream, line: &[u8]) {
        let Some(ctx) = self.lock().get(&attempt.token).cloned() else { return };
        let text = String::from_utf8_lossy(line);
        // A command that prints to standard error need not have failed.
        match stream {
            OutputStream::Stdout => ctx.log(LogLevel::Info, text),
            OutputStream::Stderr => {
                let fields = Map::from_iter([("stream".to_owned(), Value::from("stderr"))]);
                ctx.log_with(LogLevel::Warn, text, fields);
            }
        }
    }
}

/// An attempt whose lines are kept.
pub(super) struct OpenLog {
    logs: Arc<JobLogs>,
    token: String,
}

impl Drop for OpenLog {
    fn drop(&mut self) {
        self.logs.lock().remove(&self.token);
    }
}
