//! Brings the schema up to what this program knows, before anything else is asked of the database.
//!
//! All pending steps are one transaction under an advisory lock: of many nodes that start together one does it, the
//! others wait and find it done. A schema that is newer than the program is refused.

use deadpool_postgres::{Client, Transaction};
use tickwheel_core::ports::StoreResult;

use super::error::{not_done, write_failed};
use super::locks::LOCK_MIGRATIONS;
use super::row::column;
use crate::migration::{Migration, pending};

static MIGRATIONS: [Migration; 18] = [
    Migration { version: 1, name: "heart", sql: include_str!("../../migrations/postgres/0001_heart.sql") },
    Migration {
        version: 2,
        name: "schedules",
        sql: include_str!("../../migrations/postgres/0002_schedules.sql"),
    },
    Migration {
        version: 3,
        name: "backfills",
        sql: include_str!("../../migrations/postgres/0003_backfills.sql"),
    },
    Migration {
        version: 4,
        name: "dependencies",
        sql: include_str!("../../migrations/postgres/0004_dependencies.sql"),
    },
    Migration {
        version: 5,
        name: "workflows",
        sql: include_str!("../../migrations/postgres/0005_workflows.sql"),
    },
    Migration { version: 6, name: "costs", sql: include_str!("../../migrations/postgres/0006_costs.sql") },
    Migration {
        version: 7,
        name: "callback_receivers",
        sql: include_str!("../../migrations/postgres/0007_callback_receivers.sql"),
    },
    Migration {
        version: 8,
        name: "run_data",
        sql: include_str!("../../migrations/postgres/0008_run_data.sql"),
    },
    Migration {
        version: 9,
        name: "queued_firings",
        sql: include_str!("../../migrations/postgres/0009_queued_firings.sql"),
    },
    Migration {
        version: 10,
        name: "callback_tries",
        sql: include_str!("../../migrations/postgres/0010_callback_tries.sql"),
    },
    Migration {
        version: 11,
        name: "paused_runs",
        sql: include_str!("../../migrations/postgres/0011_paused_runs.sql"),
    },
    Migration {
        version: 12,
        name: "field_words",
        sql: include_str!("../../migrations/postgres/0012_field_words.sql"),
    },
    Migration {
        version: 13,
        name: "callback_subjects",
        sql: include_str!("../../migrations/postgres/0013_callback_subjects.sql"),
    },
    Migration {
        version: 14,
        name: "fan_outs",
        sql: include_str!("../../migrations/postgres/0014_fan_outs.sql"),
    },
    Migration {
        version: 15,
        name: "workers",
        sql: include_str!("../../migrations/postgres/0015_workers.sql"),
    },
    Migration {
        version: 16,
        name: "attempt_notes",
        sql: include_str!("../../migrations/postgres/0016_attempt_notes.sql"),
    },
    Migration {
        version: 17,
        name: "unused_routes",
        sql: include_str!("../../migrations/postgres/0017_unused_routes.sql"),
    },
    Migration {
        version: 18,
        name: "executors",
        sql: include_str!("../../migrations/postgres/0018_executors.sql"),
    },
];

const CREATE_LEDGER: &str = "\
CREATE TABLE schema_migrations (
    version bigint NOT NULL,
    name text NOT NULL,
    applied_at bigint NOT NULL,
    CONSTRAINT schema_migrations_pkey PRIMARY KEY (version)
)";

const RECORD: &str = "\
INSERT INTO schema_migrations (version, name, applied_at) \
VALUES ($1, $2, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)";

/// Runs what is pending.
pub(super) async fn migrate(client: &mut Client) -> StoreResult<()> {
    let transaction = client.transaction().await.map_err(not_done)?;
    // Building an index over millions of jobs takes longer than any statement should.
    transaction.batch_execute("SET LOCAL statement_timeout = 0").await.map_err(not_done)?;
    transaction.batch_execute(LOCK_MIGRATIONS).await.map_err(not_done)?;
    let applied = applied_version(&transaction).await?;
    for migration in pending(&MIGRATIONS, applied)? {
        transaction.batch_execute(migration.sql).await.map_err(not_done)?;
        transaction.execute(RECORD, &[&migration.version, &migration.name]).await.map_err(not_done)?;
    }
    transaction.commit().await.map_err(write_failed)
}

async fn applied_version(transaction: &Transaction<'_>) -> StoreResult<i64> {
    // Asked for rather than `IF NOT EXISTS`: once all is done, a role that may not create tables is enough.
    let found = transaction.query_one("SELECT to_regclass('schema_migrations') IS NOT NULL", &[]);
    if !column::<bool>(&found.await.map_err(not_done)?, 0)? {
        transaction.batch_execute(CREATE_LEDGER).await.map_err(not_done)?;
    }
    let latest = transaction.query_one("SELECT coalesce(max(version), 0) FROM schema_migrations", &[]);
    column(&latest.await.map_err(not_done)?, 0)
}
