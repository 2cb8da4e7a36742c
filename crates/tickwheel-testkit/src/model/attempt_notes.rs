//! What attempts say beside how they ended: log lines, progress, effects that happen once.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use tickwheel_core::log::{ChunkSize, LogAppend, LogChunk, LogHead, LogPage, LogPlace, LogReading};
use tickwheel_core::once::{
    self, KeyChange, OnceAnswer, OnceCall, OnceKey, OnceReport, OnceReported, OnceScope,
};
use tickwheel_core::ports::{AttemptLogStore, LogQuery, OnceStore, ProgressStore, StoreResult};
use tickwheel_core::progress::Progress;
use tickwheel_core::token::AttemptRef;
use tickwheel_core::{JobId, Timestamp};

use super::Model;
use super::faults::Verb;
use super::store::ModelStore;

/// By tenant, job (none: for all of them) and key.
type KeyAddress = (Arc<str>, Option<JobId>, String);

/// What attempts said.
#[derive(Clone, Debug, Default)]
pub(super) struct Notes {
    logs: BTreeMap<(JobId, u32), (LogHead, Vec<LogChunk>)>,
    progress: BTreeMap<JobId, Progress>,
    once: BTreeMap<KeyAddress, OnceKey>,
}

impl Model {
    /// Adds lines to a log. `false`: there is no such job.
    pub fn append_log(&mut self, append: LogAppend) -> bool {
        let LogAppend { attempt, first, lines } = append;
        if self.job(attempt.job_id).is_none() {
            return false;
        }
        let (head, chunks) = self.notes.logs.entry((attempt.job_id, attempt.attempt)).or_default();
        let appended = head.append(first, lines);
        let sizes: Vec<ChunkSize> = chunks.iter().map(LogChunk::size).collect();
        chunks.drain(..head.drop_oldest(&sizes).len());
        chunks.extend(appended.chunks);
        true
    }

    /// Lines of a job's attempts.
    pub fn read_logs(&self, query: &LogQuery) -> LogPage {
        let only = query.attempt.map(|attempt| LogPlace { attempt, line: 0 });
        let from = only.map_or(query.from, |start| query.from.max(start));
        let mut reading = LogReading::new(from, query.lines_max, query.bytes_max);
        let last = query.attempt.unwrap_or(u32::MAX);
        if from.attempt <= last {
            let logs = self.notes.logs.range((query.job_id, from.attempt)..=(query.job_id, last));
            for ((_, attempt), (head, chunks)) in logs {
                chunks.iter().for_each(|chunk| reading.add(*attempt, head, chunk.clone()));
            }
        }
        reading.finish(true)
    }

    /// Keeps how far attempts have come.
    pub fn put_progress(&mut self, notes: Vec<Progress>) {
        for note in notes {
            if self.running(note.attempt.job_id, note.attempt.attempt).is_some() {
                self.notes.progress.insert(note.attempt.job_id, note);
            }
        }
    }

    /// What the current attempt of a running job said last.
    pub fn get_progress(&self, id: JobId) -> Option<Progress> {
        self.notes.progress.get(&id).filter(|note| self.is_current(note.attempt)).cloned()
    }

    /// Forgets what attempts said that are over.
    pub fn forget_progress(&mut self, before: Timestamp, limit: usize) -> usize {
        let notes = self.notes.progress.values();
        let over = notes.filter(|note| note.at < before && !self.is_current(note.attempt));
        let over: Vec<JobId> = over.take(limit).map(|note| note.attempt.job_id).collect();
        over.iter().for_each(|id| drop(self.notes.progress.remove(id)));
        over.len()
    }

    /// An attempt asks for a key.
    pub fn ask_once(&mut self, call: &OnceCall) -> OnceAnswer {
        let Some(address) = self.address(call.caller, call.scope, &call.key) else {
            return OnceAnswer::Stale;
        };
        let key = self.notes.once.get(&address).cloned();
        let holder_is_current = key.as_ref().is_some_and(|key| self.is_current(key.holder));
        let (answer, change) = once::ask(key, holder_is_current, call);
        self.apply_key(address, change);
        answer
    }

    /// An attempt says what came of an effect.
    pub fn report_once(&mut self, report: &OnceReport) -> OnceReported {
        let caller = report.caller;
        let scope = report.scope.unwrap_or_else(|| {
            let own =
                self.address(caller, OnceScope::Job, &report.key).and_then(|it| self.notes.once.get(&it));
            if own.is_some_and(|key| key.holder == caller) { OnceScope::Job } else { OnceScope::Tenant }
        });
        let Some(address) = self.address(caller, scope, &report.key) else { return OnceReported::Stale };
        let (answer, change) = once::report(self.notes.once.get(&address).cloned(), report);
        self.apply_key(address, change);
        answer
    }

    /// Removes keys that are forgotten.
    pub fn expire_once(&mut self, now: Timestamp, limit: usize) -> usize {
        let keys = self.notes.once.iter();
        let mut old: Vec<(Timestamp, KeyAddress)> = keys
            .filter(|(_, key)| once::is_forgotten(key, self.is_current(key.holder), now))
            .map(|(address, key)| (key.expires_at, address.clone()))
            .collect();
        old.sort();
        old.truncate(limit);
        old.iter().for_each(|(_, address)| drop(self.notes.once.remove(address)));
        old.len()
    }

    fn is_current(&self, attempt: AttemptRef) -> bool {
        self.running(attempt.job_id, attempt.attempt).is_some()
    }

    /// Where a key is. `None`: the caller's attempt is not the current one.
    fn address(&self, caller: AttemptRef, scope: OnceScope, key: &str) -> Option<KeyAddress> {
        let job = self.running(caller.job_id, caller.attempt)?;
        Some((job.tenant.clone(), (scope == OnceScope::Job).then_some(job.id), key.to_owned()))
    }

    fn apply_key(&mut self, address: KeyAddress, change: KeyChange) {
        match change {
            KeyChange::Keep => {}
            KeyChange::Put(key) => drop(self.notes.once.insert(address, key)),
            KeyChange::Remove => drop(self.notes.once.remove(&address)),
        }
    }
}

#[async_trait]
impl AttemptLogStore for ModelStore {
    async fn append_logs(&self, appends: Vec<LogAppend>) -> StoreResult<Vec<bool>> {
        let append = |model: &mut Model| appends.into_iter().map(|it| model.append_log(it)).collect();
        self.write(Verb::AppendLogs, append).await
    }

    async fn read_logs(&self, query: LogQuery) -> StoreResult<LogPage> {
        self.read(Verb::ReadLogs, |model| model.read_logs(&query)).await
    }
}

#[async_trait]
impl ProgressStore for ModelStore {
    async fn put_progress(&self, notes: Vec<Progress>) -> StoreResult<()> {
        self.write(Verb::PutProgress, move |model| model.put_progress(notes)).await
    }

    async fn get_progress(&self, id: JobId) -> StoreResult<Option<Progress>> {
        self.read(Verb::GetProgress, |model| model.get_progress(id)).await
    }

    async fn forget_progress(&self, before: Timestamp, limit: usize) -> StoreResult<usize> {
        self.write(Verb::ForgetProgress, move |model| model.forget_progress(before, limit)).await
    }
}

#[async_trait]
impl OnceStore for ModelStore {
    async fn ask_once(&self, call: OnceCall) -> StoreResult<OnceAnswer> {
        self.write(Verb::AskOnce, move |model| model.ask_once(&call)).await
    }

    async fn report_once(&self, report: OnceReport) -> StoreResult<OnceReported> {
        self.write(Verb::ReportOnce, move |model| model.report_once(&report)).await
    }

    async fn expire_once(&self, now: Timestamp, limit: usize) -> StoreResult<usize> {
        self.write(Verb::ExpireOnce, move |model| model.expire_once(now, limit)).await
    }
}
