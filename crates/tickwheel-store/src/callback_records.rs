//! Callbacks as people see them, put together from what waits and what was tried; the same in both stores.

use std::collections::BTreeMap;

use tickwheel_core::callback::TRIES_KEPT_MAX;
use tickwheel_core::ports::{
    CallbackRecord, CallbackSubject, StoreResult, SubjectKind, TriedCallback, TryOutcome,
};
use tickwheel_core::{JobId, JsonText, RunId, State, Timestamp};
use uuid::Uuid;

use crate::columns::decode_code;
use crate::error::corrupt;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct CallbackRecords(BTreeMap<i64, CallbackRecord>);

impl CallbackRecords {
    /// One that is still to be sent.
    pub fn waits(&mut self, id: i64, url: &str, state: State, due_at: Timestamp) {
        self.record(id, url, state).due_at = Some(due_at);
    }

    /// One of its tries. They come with the latest first.
    pub fn was_tried(&mut self, id: i64, url: &str, state: State, tried: TriedCallback) {
        self.record(id, url, state).tries.insert(0, tried);
    }

    fn record(&mut self, id: i64, url: &str, state: State) -> &mut CallbackRecord {
        let empty = || CallbackRecord { id, url: url.to_owned(), state, due_at: None, tries: Vec::new() };
        self.0.entry(id).or_insert_with(empty)
    }

    /// By their numbers.
    pub fn finish(self) -> Vec<CallbackRecord> {
        self.0.into_values().collect()
    }
}

/// What a callback is about, from its columns.
pub(crate) fn decode_subject(kind: i64, id: Uuid, document: Option<&str>) -> StoreResult<CallbackSubject> {
    match (decode_code("subject of a callback", kind, SubjectKind::from_code)?, document) {
        (SubjectKind::Job, _) => Ok(CallbackSubject::Job(JobId::from_uuid(id))),
        (SubjectKind::Run, Some(document)) => {
            let document = JsonText::from_checked(document);
            Ok(CallbackSubject::Run { id: RunId::from_uuid(id), document })
        }
        (SubjectKind::Run, None) => Err(corrupt("callback of a run", "it says nothing")),
    }
}

/// So many tries about a job or a run are kept when another one comes.
pub(crate) fn kept_beside_one() -> i64 {
    i64::try_from(TRIES_KEPT_MAX - 1).unwrap_or(i64::MAX)
}

/// How a try ended.
pub(crate) fn decode_try(code: i64) -> StoreResult<TryOutcome> {
    decode_code("outcome of a callback", code, TryOutcome::from_code)
}
