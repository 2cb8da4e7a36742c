//! The three writes on PostgreSQL, over one connection or several at once, each with its share of the jobs.

use std::time::{Duration, Instant};

use anyhow::ensure;
use futures::future::try_join_all;
use serde_json::Value;
use tokio_postgres::{Client, NoTls, Statement};
use uuid::Uuid;

use crate::jobs::{BATCH_LEN, PAYLOAD, ids, rates};

/// The planner knows nothing of tables that were empty a moment ago: it is held to the way along the index.
const SETTINGS: &str = "SET jit = off; SET enable_seqscan = off; SET enable_bitmapscan = off;
                        SET enable_hashjoin = off; SET enable_mergejoin = off";

/// Room on every page for the claimed version of a row, so that claiming touches no index.
const SCHEMA: &str = "
    CREATE TABLE jobs (id uuid PRIMARY KEY, due_at bigint NOT NULL, attempt integer NOT NULL DEFAULT 0,
                       state smallint NOT NULL, session uuid, payload text NOT NULL) WITH (fillfactor = 45);
    CREATE INDEX jobs_due ON jobs (due_at, id);
    CREATE TABLE finished_jobs (id uuid PRIMARY KEY, due_at bigint NOT NULL, attempt integer NOT NULL,
                                state smallint NOT NULL, payload text NOT NULL);
";

const INSERT: &str = "
    INSERT INTO jobs (id, due_at, state, payload)
    SELECT n.id, 0, 1, n.payload FROM unnest($1::uuid[], $2::text[]) AS n (id, payload)";

const CLAIM: &str = "
    UPDATE jobs SET state = 3, attempt = attempt + 1, session = $2
    WHERE id = ANY($1::uuid[]) AND state = 1 RETURNING id, payload";

const SETTLE: &str = "
    WITH gone AS (DELETE FROM jobs WHERE id = ANY($1::uuid[]) AND state = 3 RETURNING id, due_at, attempt, payload)
    INSERT INTO finished_jobs (id, due_at, attempt, state, payload) SELECT id, due_at, attempt, 4, payload FROM gone";

/// Rates of inserting and of draining.
#[tokio::main]
pub async fn measure(url: &str, connections: usize, jobs: usize) -> anyhow::Result<Value> {
    ensure!(connections > 0, "at least one connection is needed");
    connect(url).await?.batch_execute(SCHEMA).await?;
    let ids = ids(jobs);
    let shares = ids.chunks(jobs.div_ceil(connections).max(1));
    let writers = try_join_all(shares.map(|share| Writer::new(url, share.to_vec()))).await?;

    let inserting = together(&writers, async |writer| writer.insert().await).await?;
    let draining = together(&writers, async |writer| writer.drain().await).await?;
    Ok(rates(jobs, inserting, draining))
}

async fn together(
    writers: &[Writer],
    write: impl AsyncFn(&Writer) -> anyhow::Result<()>,
) -> anyhow::Result<Duration> {
    let begun = Instant::now();
    try_join_all(writers.iter().map(|writer| write(writer))).await?;
    Ok(begun.elapsed())
}

async fn connect(url: &str) -> anyhow::Result<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    client.batch_execute(SETTINGS).await?;
    Ok(client)
}

/// One connection and its share of the jobs.
struct Writer {
    client: Client,
    insert: Statement,
    claim: Statement,
    settle: Statement,
    ids: Vec<Uuid>,
}

impl Writer {
    async fn new(url: &str, ids: Vec<Uuid>) -> anyhow::Result<Self> {
        let client = connect(url).await?;
        let insert = client.prepare(INSERT).await?;
        let claim = client.prepare(CLAIM).await?;
        let settle = client.prepare(SETTLE).await?;
        Ok(Self { client, insert, claim, settle, ids })
    }

    async fn insert(&self) -> anyhow::Result<()> {
        let payloads = [PAYLOAD; BATCH_LEN];
        for batch in self.ids.chunks(BATCH_LEN) {
            let inserted = self.client.execute(&self.insert, &[&batch, &&payloads[..batch.len()]]).await?;
            ensure!(inserted == batch.len() as u64, "{inserted} of {} jobs were inserted", batch.len());
        }
        Ok(())
    }

    async fn drain(&self) -> anyhow::Result<()> {
        for batch in self.ids.chunks(BATCH_LEN) {
            let claimed = self.client.query(&self.claim, &[&batch, &Uuid::nil()]).await?;
            ensure!(claimed.len() == batch.len(), "{} of {} jobs were claimed", claimed.len(), batch.len());
            let settled = self.client.execute(&self.settle, &[&batch]).await?;
            ensure!(settled == batch.len() as u64, "{settled} of {} jobs were settled", batch.len());
        }
        Ok(())
    }
}
