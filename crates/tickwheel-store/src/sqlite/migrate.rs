//! Brings the file's schema up to what this program knows.
//!
//! Each step and its entry in `schema_migrations` are one transaction: a crash leaves whole steps behind, never half of
//! one.

use rusqlite::{Connection, TransactionBehavior};

use super::fault::Verb;
use super::workers::fill_routes;
use crate::migration::{Migration, pending};

static MIGRATIONS: [Migration; 18] = [
    Migration { version: 1, name: "heart", sql: include_str!("../../migrations/sqlite/0001_heart.sql") },
    Migration {
        version: 2,
        name: "schedules",
        sql: include_str!("../../migrations/sqlite/0002_schedules.sql"),
    },
    Migration {
        version: 3,
        name: "backfills",
        sql: include_str!("../../migrations/sqlite/0003_backfills.sql"),
    },
    Migration {
        version: 4,
        name: "dependencies",
        sql: include_str!("../../migrations/sqlite/0004_dependencies.sql"),
    },
    Migration {
        version: 5,
        name: "workflows",
        sql: include_str!("../../migrations/sqlite/0005_workflows.sql"),
    },
    Migration { version: 6, name: "costs", sql: include_str!("../../migrations/sqlite/0006_costs.sql") },
    Migration {
        version: 7,
        name: "callback_receivers",
        sql: include_str!("../../migrations/sqlite/0007_callback_receivers.sql"),
    },
    Migration {
        version: 8,
        name: "run_data",
        sql: include_str!("../../migrations/sqlite/0008_run_data.sql"),
    },
    Migration {
        version: 9,
        name: "queued_firings",
        sql: include_str!("../../migrations/sqlite/0009_queued_firings.sql"),
    },
    Migration {
        version: 10,
        name: "callback_tries",
        sql: include_str!("../../migrations/sqlite/0010_callback_tries.sql"),
    },
    Migration {
        version: 11,
        name: "paused_runs",
        sql: include_str!("../../migrations/sqlite/0011_paused_runs.sql"),
    },
    Migration {
        version: 12,
        name: "field_words",
        sql: include_str!("../../migrations/sqlite/0012_field_words.sql"),
    },
    Migration {
        version: 13,
        name: "callback_subjects",
        sql: include_str!("../../migrations/sqlite/0013_callback_subjects.sql"),
    },
    Migration {
        version: 14,
        name: "fan_outs",
        sql: include_str!("../../migrations/sqlite/0014_fan_outs.sql"),
    },
    Migration { version: 15, name: "workers", sql: include_str!("../../migrations/sqlite/0015_workers.sql") },
    Migration {
        version: 16,
        name: "attempt_notes",
        sql: include_str!("../../migrations/sqlite/0016_attempt_notes.sql"),
    },
    Migration {
        version: 17,
        name: "unused_routes",
        sql: include_str!("../../migrations/sqlite/0017_unused_routes.sql"),
    },
    Migration {
        version: 18,
        name: "executors",
        sql: include_str!("../../migrations/sqlite/0018_executors.sql"),
    },
];

/// Runs what is missing.
pub(super) fn migrate(connection: &mut Connection) -> Verb<()> {
    connection.execute_batch(
        "CREATE TABLE IF NOT EXISTS schema_migrations (
    version    INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    applied_at INTEGER NOT NULL
) STRICT",
    )?;
    let applied =
        connection
            .query_row("SELECT coalesce(max(version), 0) FROM schema_migrations", [], |row| row.get(0))?;
    for migration in pending(&MIGRATIONS, applied)? {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(migration.sql)?;
        if migration.name == "workers" {
            // A route's id is a digest, which SQLite cannot compute.
            fill_routes(&transaction)?;
        }
        transaction.execute(
            "INSERT INTO schema_migrations (version, name, applied_at)
             VALUES (?1, ?2, CAST(unixepoch('subsec') * 1000 AS INTEGER))",
            (migration.version, migration.name),
        )?;
        transaction.commit()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tickwheel_core::ports::StoreError;

    use super::*;
    use crate::golden::assert_schema;
    use crate::job_columns::{Selection, Table};

    /// As a program left it that knew so many migrations.
    fn migrated_to(version: i64) -> Connection {
        let connection = Connection::open_in_memory().expect("memory");
        connection
            .execute_batch(
                "CREATE TABLE schema_migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL)",
            )
            .expect("a table");
        for migration in MIGRATIONS.iter().filter(|migration| migration.version <= version) {
            connection.execute_batch(migration.sql).expect("a migration");
            let values = (migration.version, migration.name);
            connection.execute("INSERT INTO schema_migrations VALUES (?1, ?2, 0)", values).expect("recorded");
        }
        connection
    }

    fn migrated() -> Connection {
        let mut connection = Connection::open_in_memory().expect("memory");
        migrate(&mut connection).expect("an empty database can be migrated");
        connection
    }

    #[test]
    fn the_schema_is_the_one_that_was_reviewed() {
        let connection = migrated();
        let mut dump =
            String::from("-- The SQLite schema after all migrations. Written by a test, do not edit.\n");
        let mut statement = connection
            .prepare(
                "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY tbl_name, type DESC, name",
            )
            .expect("sqlite_master");
        for sql in statement.query_map([], |row| row.get::<_, String>(0)).expect("rows") {
            dump.push_str(&format!("\n{};\n", sql.expect("text")));
        }
        assert_schema("sqlite.sql", &dump);
    }

    #[test]
    fn the_list_of_columns_is_that_of_the_tables() {
        let connection = migrated();
        for (table, name) in [(Table::Live, "jobs"), (Table::Finished, "finished_jobs")] {
            let mut statement =
                connection.prepare("SELECT name FROM pragma_table_info(?1)").expect("a pragma");
            let found = statement.query_map([name], |row| row.get::<_, String>(0)).expect("rows");
            // Which node claimed a job for a worker is a note beside it.
            let found = found.map(|name| name.expect("text")).filter(|name| name != "claimed_by");
            let found: BTreeSet<String> = found.collect();
            let listed: BTreeSet<String> =
                Selection::all(table).columns().map(|column| column.name.to_owned()).collect();
            assert_eq!(found, listed, "{name}");
        }
    }

    #[test]
    fn migrating_twice_changes_nothing() {
        let mut connection = migrated();
        migrate(&mut connection).expect("nothing to do");
        let versions: i64 = connection
            .query_row("SELECT count(*) FROM schema_migrations", [], |row| row.get(0))
            .expect("a count");
        assert_eq!(versions, MIGRATIONS.len() as i64);
    }

    #[test]
    fn a_file_of_the_first_version_keeps_its_jobs() {
        let mut connection = Connection::open_in_memory().expect("memory");
        connection.execute_batch(MIGRATIONS[0].sql).expect("the first version");
        connection
            .execute_batch(
                "CREATE TABLE schema_migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL);
                 INSERT INTO schema_migrations VALUES (1, 'heart', 0);
                 INSERT INTO finished_jobs VALUES
                     (zeroblob(16), 0, '', '', '', 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, NULL, 0, NULL, NULL, NULL, '', '', '', NULL);",
            )
            .expect("a job of then");
        migrate(&mut connection).expect("brought up to date");
        let made_by: Option<Vec<u8>> = connection
            .query_row("SELECT schedule_id FROM finished_jobs", [], |row| row.get(0))
            .expect("the job is there");
        assert_eq!(made_by, None);
    }

    #[test]
    fn what_a_fan_out_knew_of_its_items_leaves_its_payload() {
        let mut connection = migrated_to(13);
        let columns = "id, partition, tenant, type, queue, priority, state, target, execute_at, due_at, created_at,
                       timeout_ms, attempt, retries, lost, burst_failures, cancel_requested, tags, spec, payload";
        for (id, target, payload) in
            [(1, 3, r#"{"first":4,"items":2,"released":2}"#), (2, 3, "null"), (3, 1, r#"{"first":"name"}"#)]
        {
            let values = "(?1, 0, '', '', '', 0, 0, ?2, 0, 0, 0, 0, 0, 0, 0, 0, 0, '', '', ?3)";
            let sql = format!("INSERT INTO jobs ({columns}) VALUES {values}");
            connection.execute(&sql, (vec![id; 16], target, payload)).expect("a job of then");
        }
        migrate(&mut connection).expect("brought up to date");
        let mut statement =
            connection.prepare("SELECT payload, fan_out FROM jobs ORDER BY id").expect("columns");
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("rows");
        let rows: Vec<(String, Option<String>)> = rows.map(|row| row.expect("texts")).collect();
        let items = r#"{"first":4,"items":2,"released":2}"#.to_owned();
        let named = r#"{"first":"name"}"#.to_owned();
        assert_eq!(rows, [("null".to_owned(), Some(items)), ("null".to_owned(), None), (named, None)]);
    }

    #[test]
    fn a_file_of_a_newer_program_is_refused() {
        let mut connection = migrated();
        connection.execute("INSERT INTO schema_migrations VALUES (999, 'future', 0)", []).expect("inserted");
        let error = StoreError::from(migrate(&mut connection).expect_err("must be refused"));
        assert!(matches!(error, StoreError::Corrupt(_)), "{error}");
    }
}
