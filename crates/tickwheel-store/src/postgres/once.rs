//! Keys of effects that happen once.
//!
//! Who asks for a key that is there locks its row; who asks for one that is not there inserts it, and looks again if
//! somebody else was faster.

use const_format::formatcp;
use deadpool_postgres::Transaction;
use tickwheel_core::once::{
    self, KeyChange, OnceAnswer, OnceCall, OnceKey, OnceReport, OnceReported, OnceScope,
};
use tickwheel_core::ports::StoreResult;
use tickwheel_core::token::AttemptRef;
use tickwheel_core::{JsonText, Timestamp};
use uuid::Uuid;

use super::PostgresStore;
use super::error::{not_done, write_failed};
use super::pipeline::{Param, run};
use super::row::{column, count, limit};
use crate::codes::RUNNING;
use crate::note_columns::{OnceRow, encode_ttl, once_job};

const TENANT_IF_CURRENT: &str =
    formatcp!("SELECT tenant FROM jobs WHERE id = $1::uuid AND attempt = $2::integer AND state = {RUNNING}");

const LOCK: &str = "\
SELECT holder_job, holder_attempt, in_doubt, result, ttl_ms, expires_at FROM once_keys
WHERE tenant = $1::text AND job_id = $2::uuid AND key = $3::text FOR UPDATE";

const INSERT: &str = "\
INSERT INTO once_keys (tenant, job_id, key, holder_job, holder_attempt, in_doubt, result, ttl_ms, expires_at)
VALUES ($1::text, $2::uuid, $3::text, $4::uuid, $5::integer, $6::boolean, $7::text, $8::bigint, $9::bigint)
ON CONFLICT DO NOTHING RETURNING true";

const UPDATE: &str = "\
UPDATE once_keys SET holder_job = $4::uuid, holder_attempt = $5::integer, in_doubt = $6::boolean, result = $7::text,
    ttl_ms = $8::bigint, expires_at = $9::bigint
WHERE tenant = $1::text AND job_id = $2::uuid AND key = $3::text RETURNING true";

const REMOVE: &str = "\
DELETE FROM once_keys WHERE tenant = $1::text AND job_id = $2::uuid AND key = $3::text RETURNING true";

const EXPIRE: &str = formatcp!(
    "\
DELETE FROM once_keys AS o USING (
    SELECT k.tenant, k.job_id, k.key FROM once_keys AS k
    WHERE k.expires_at <= $1::bigint AND (k.result IS NOT NULL OR NOT EXISTS (
        SELECT 1 FROM jobs AS j
        WHERE j.id = k.holder_job AND j.attempt = k.holder_attempt AND j.state = {RUNNING}))
    ORDER BY k.expires_at LIMIT $2::bigint FOR UPDATE OF k SKIP LOCKED
) AS old
WHERE o.tenant = old.tenant AND o.job_id = old.job_id AND o.key = old.key"
);

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[TENANT_IF_CURRENT, LOCK, INSERT, UPDATE, REMOVE, EXPIRE];

/// Where a key is.
struct Address<'k> {
    tenant: String,
    job_id: Uuid,
    key: &'k str,
}

pub(super) async fn ask_once(store: &PostgresStore, call: &OnceCall) -> StoreResult<OnceAnswer> {
    let mut client = store.client().await?;
    let transaction = client.transaction().await.map_err(not_done)?;
    let Some(tenant) = tenant_if_current(&transaction, call.caller).await? else {
        return Ok(OnceAnswer::Stale);
    };
    let address = Address { tenant, job_id: once_job(call.scope, call.caller.job_id), key: &call.key };
    let answer = loop {
        let key = lock(&transaction, &address).await?;
        let holder_is_current = match &key {
            Some(key) => tenant_if_current(&transaction, key.holder).await?.is_some(),
            None => false,
        };
        let is_new = key.is_none();
        let (answer, change) = once::ask(key, holder_is_current, call);
        if apply(&transaction, &address, change, is_new).await? {
            break answer;
        }
    };
    transaction.commit().await.map_err(write_failed)?;
    Ok(answer)
}

pub(super) async fn report_once(store: &PostgresStore, report: &OnceReport) -> StoreResult<OnceReported> {
    let mut client = store.client().await?;
    let transaction = client.transaction().await.map_err(not_done)?;
    let caller = report.caller;
    let Some(tenant) = tenant_if_current(&transaction, caller).await? else {
        return Ok(OnceReported::Stale);
    };
    let job_id = once_job(report.scope.unwrap_or_default(), caller.job_id);
    let mut address = Address { tenant, job_id, key: &report.key };
    let mut key = lock(&transaction, &address).await?;
    if report.scope.is_none() && key.as_ref().is_none_or(|key| key.holder != caller) {
        address.job_id = once_job(OnceScope::Tenant, caller.job_id);
        key = lock(&transaction, &address).await?;
    }
    let (answer, change) = once::report(key, report);
    apply(&transaction, &address, change, false).await?;
    transaction.commit().await.map_err(write_failed)?;
    Ok(answer)
}

pub(super) async fn expire_once(store: &PostgresStore, now: Timestamp, len_max: usize) -> StoreResult<usize> {
    let removed = store.write(EXPIRE, &[&now.as_millis(), &limit(len_max)]).await?;
    Ok(usize::try_from(removed).unwrap_or(usize::MAX))
}

/// The tenant of an attempt's job, if the attempt is the current one and runs.
async fn tenant_if_current(
    transaction: &Transaction<'_>,
    attempt: AttemptRef,
) -> StoreResult<Option<String>> {
    let params: [Param<'_>; 2] = [&attempt.job_id.as_uuid(), &count(attempt.attempt)];
    let rows = run(transaction, TENANT_IF_CURRENT, &params).await?;
    rows.first().map(|row| column(row, 0)).transpose()
}

async fn lock(transaction: &Transaction<'_>, address: &Address<'_>) -> StoreResult<Option<OnceKey>> {
    let rows = run(transaction, LOCK, &[&address.tenant, &address.job_id, &address.key]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let row = OnceRow {
        holder_job: column(row, 0)?,
        holder_attempt: column::<i32>(row, 1)?.into(),
        in_doubt: column(row, 2)?,
        result: column(row, 3)?,
        ttl_ms: column(row, 4)?,
        expires_at: column(row, 5)?,
    };
    row.decode().map(Some)
}

/// Carries out a change of a key that is locked, or new. `false`: somebody else inserted it first.
async fn apply(
    transaction: &Transaction<'_>,
    address: &Address<'_>,
    change: KeyChange,
    is_new: bool,
) -> StoreResult<bool> {
    let place: [Param<'_>; 3] = [&address.tenant, &address.job_id, &address.key];
    let rows = match change {
        KeyChange::Keep => return Ok(true),
        KeyChange::Remove => run(transaction, REMOVE, &place).await?,
        KeyChange::Put(key) => {
            let result = key.result.as_ref().map(JsonText::as_str);
            let (job, attempt) = (key.holder.job_id.as_uuid(), count(key.holder.attempt));
            let (ttl, expires_at) = (encode_ttl(key.ttl), key.expires_at.as_millis());
            let values: [Param<'_>; 6] = [&job, &attempt, &key.in_doubt, &result, &ttl, &expires_at];
            let sql = if is_new { INSERT } else { UPDATE };
            run(transaction, sql, &[&place[..], &values].concat()).await?
        }
    };
    Ok(!rows.is_empty())
}
