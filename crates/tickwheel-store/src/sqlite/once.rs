//! Keys of effects that happen once.

use const_format::formatcp;
use rusqlite::{Connection, OptionalExtension};
use tickwheel_core::Timestamp;
use tickwheel_core::once::{
    self, KeyChange, OnceAnswer, OnceCall, OnceKey, OnceReport, OnceReported, OnceScope,
};
use tickwheel_core::token::AttemptRef;
use uuid::Uuid;

use super::fault::Verb;
use crate::codes::RUNNING;
use crate::note_columns::{OnceRow, encode_ttl, once_job};

/// Where a key is.
struct Address<'k> {
    tenant: String,
    job_id: Uuid,
    key: &'k str,
}

/// See [`tickwheel_core::ports::OnceStore::ask_once`].
pub(super) fn ask_once(connection: &Connection, call: &OnceCall) -> Verb<OnceAnswer> {
    let Some(tenant) = tenant_if_current(connection, call.caller)? else { return Ok(OnceAnswer::Stale) };
    let address = Address { tenant, job_id: once_job(call.scope, call.caller.job_id), key: &call.key };
    let key = find_key(connection, &address)?;
    let holder_is_current = match &key {
        Some(key) => tenant_if_current(connection, key.holder)?.is_some(),
        None => false,
    };
    let (answer, change) = once::ask(key, holder_is_current, call);
    apply(connection, &address, change)?;
    Ok(answer)
}

/// See [`tickwheel_core::ports::OnceStore::report_once`].
pub(super) fn report_once(connection: &Connection, report: &OnceReport) -> Verb<OnceReported> {
    let caller = report.caller;
    let Some(tenant) = tenant_if_current(connection, caller)? else { return Ok(OnceReported::Stale) };
    let mut address = Address {
        tenant,
        job_id: once_job(report.scope.unwrap_or_default(), caller.job_id),
        key: &report.key,
    };
    let mut key = find_key(connection, &address)?;
    if report.scope.is_none() && key.as_ref().is_none_or(|key| key.holder != caller) {
        address.job_id = once_job(OnceScope::Tenant, caller.job_id);
        key = find_key(connection, &address)?;
    }
    let (answer, change) = once::report(key, report);
    apply(connection, &address, change)?;
    Ok(answer)
}

/// See [`tickwheel_core::ports::OnceStore::expire_once`].
pub(super) fn expire_once(connection: &Connection, now: Timestamp, limit: usize) -> Verb<usize> {
    let removed = connection
        .prepare_cached(formatcp!(
            "DELETE FROM once_keys WHERE rowid IN (
                 SELECT k.rowid FROM once_keys AS k
                 WHERE k.expires_at <= ?1 AND (k.result IS NOT NULL OR NOT EXISTS (
                     SELECT 1 FROM jobs AS j
                     WHERE j.id = k.holder_job AND j.attempt = k.holder_attempt AND j.state = {RUNNING}))
                 ORDER BY k.expires_at LIMIT ?2)"
        ))?
        .execute((now.as_millis(), i64::try_from(limit).unwrap_or(i64::MAX)))?;
    Ok(removed)
}

/// The tenant of an attempt's job, if the attempt is the current one and runs.
fn tenant_if_current(connection: &Connection, attempt: AttemptRef) -> Verb<Option<String>> {
    let tenant = connection
        .prepare_cached(formatcp!(
            "SELECT tenant FROM jobs WHERE id = ?1 AND attempt = ?2 AND state = {RUNNING}"
        ))?
        .query_row((attempt.job_id.as_uuid(), attempt.attempt), |row| row.get(0))
        .optional()?;
    Ok(tenant)
}

fn find_key(connection: &Connection, address: &Address<'_>) -> Verb<Option<OnceKey>> {
    let row = connection
        .prepare_cached(
            "SELECT holder_job, holder_attempt, in_doubt, result, ttl_ms, expires_at FROM once_keys
             WHERE tenant = ?1 AND job_id = ?2 AND key = ?3",
        )?
        .query_row((&address.tenant, address.job_id, address.key), |row| {
            Ok(OnceRow {
                holder_job: row.get(0)?,
                holder_attempt: row.get(1)?,
                in_doubt: row.get(2)?,
                result: row.get(3)?,
                ttl_ms: row.get(4)?,
                expires_at: row.get(5)?,
            })
        })
        .optional()?;
    Ok(row.map(OnceRow::decode).transpose()?)
}

fn apply(connection: &Connection, address: &Address<'_>, change: KeyChange) -> Verb<()> {
    match change {
        KeyChange::Keep => {}
        KeyChange::Put(key) => {
            connection
                .prepare_cached(
                    "INSERT OR REPLACE INTO once_keys
                         (tenant, job_id, key, holder_job, holder_attempt, in_doubt, result, ttl_ms, expires_at)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                )?
                .execute((
                    &address.tenant,
                    address.job_id,
                    address.key,
                    key.holder.job_id.as_uuid(),
                    key.holder.attempt,
                    key.in_doubt,
                    key.result.as_ref().map(tickwheel_core::JsonText::as_str),
                    encode_ttl(key.ttl),
                    key.expires_at.as_millis(),
                ))?;
        }
        KeyChange::Remove => {
            connection
                .prepare_cached("DELETE FROM once_keys WHERE tenant = ?1 AND job_id = ?2 AND key = ?3")?
                .execute((&address.tenant, address.job_id, address.key))?;
        }
    }
    Ok(())
}
