//! The schema: what the migrations make of an empty database, and who may run them.

use std::collections::BTreeSet;

use tickwheel_core::ports::StoreError;
use tickwheel_testkit::TestDatabase;

use super::{connect, number};
use crate::golden::assert_schema;
use crate::job_columns::{Selection, Table};
use crate::postgres::{PostgresOptions, PostgresStore};

/// Every table with its columns, constraints, indexes and settings, one fact a line.
const DUMP: &str = r#"
SELECT line FROM (
    SELECT c.relname, 0 AS kind, 0 AS place,
           'table ' || c.relname || coalesce(' with ' || array_to_string(c.reloptions, ', '), '') AS line
    FROM pg_class AS c
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'
    UNION ALL
    SELECT table_name, 1, ordinal_position,
           '    ' || column_name || ' ' || data_type || coalesce(' collate ' || collation_name, '')
           || CASE is_nullable WHEN 'NO' THEN ' not null' ELSE '' END
           || coalesce(' default ' || column_default, '')
           || CASE is_identity WHEN 'YES' THEN ' identity ' || lower(identity_generation) ELSE '' END
    FROM information_schema.columns WHERE table_schema = 'public'
    UNION ALL
    SELECT c.relname, 2, 0, '    constraint ' || k.conname || ' ' || pg_get_constraintdef(k.oid)
    FROM pg_constraint AS k JOIN pg_class AS c ON c.oid = k.conrelid
    WHERE c.relnamespace = 'public'::regnamespace
    UNION ALL
    SELECT tablename, 3, 0, '    ' || indexdef FROM pg_indexes WHERE schemaname = 'public'
) AS facts
ORDER BY relname COLLATE "C", kind, place, line COLLATE "C""#;

async fn dump(store: &PostgresStore) -> String {
    let rows = store.read(DUMP, &[]).await.expect("the catalogue can be read");
    rows.iter().map(|row| row.get::<_, String>(0) + "\n").collect()
}

#[tokio::test]
async fn the_migrations_make_the_golden_schema() {
    let database = TestDatabase::create().await;
    assert_schema("postgres.sql", &dump(&connect(&database).await).await);
}

#[tokio::test]
async fn the_list_of_columns_is_that_of_the_tables() {
    let database = TestDatabase::create().await;
    let store = connect(&database).await;
    for (table, name) in [(Table::Live, "jobs"), (Table::Finished, "finished_jobs")] {
        let sql = "SELECT column_name || ' ' || data_type FROM information_schema.columns
                   WHERE table_schema = 'public' AND table_name = $1::text";
        let rows = store.read(sql, &[&name]).await.expect("the catalogue can be read");
        let found: BTreeSet<String> = rows.iter().map(|row| row.get(0)).collect();
        let listed: BTreeSet<String> = Selection::all(table)
            .columns()
            .map(|column| format!("{} {}", column.name, column.pg_type))
            .collect();
        assert_eq!(found, listed, "{name}");
    }
}

#[tokio::test]
async fn many_who_start_at_once_migrate_once() {
    let database = TestDatabase::create().await;
    let stores = futures::future::join_all((0..4).map(|_| connect(&database))).await;
    assert_eq!(number(&stores[0], "SELECT count(*) - max(version) FROM schema_migrations").await, 0);
}

#[tokio::test]
async fn a_database_of_a_newer_program_is_refused() {
    let database = TestDatabase::create().await;
    let store = connect(&database).await;
    store.write("INSERT INTO schema_migrations VALUES (9999, 'future', 0)", &[]).await.expect("written");
    let refused = PostgresStore::connect(&database.url(), PostgresOptions::default()).await;
    assert!(matches!(refused, Err(StoreError::Corrupt(_))), "{refused:?}");
}
