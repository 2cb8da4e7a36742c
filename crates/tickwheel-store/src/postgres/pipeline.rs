//! Statements that go to the server together: one round trip for a whole transaction.
//!
//! Nothing is awaited between the statements, so the transaction is open on the server only as long as it takes to run
//! it, and a caller that goes away in the middle leaves nothing open: the commit was sent with the rest.

use deadpool_postgres::{Client, ClientWrapper, Transaction};
use futures::future::{join, join_all, join3};
use tickwheel_core::ports::StoreResult;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row, Statement};

use super::error::not_done;

/// A parameter of a statement.
pub(super) type Param<'a> = &'a (dyn ToSql + Sync);

/// A statement and its parameters.
pub(super) type BoundStatement<'a> = (&'static str, Vec<Param<'a>>);

/// Opens a transaction in which every statement sees what was committed before it.
pub(super) const BEGIN: &str = "BEGIN";
/// The same, and plans that were made once are kept. That is for claiming and settling, whose statements go from an
/// array of keys to their rows whatever the planner believes of the tables: to plan them anew for a small batch takes
/// longer than to run them.
pub(super) const BEGIN_PLANNED: &str = "BEGIN; SET LOCAL plan_cache_mode = force_generic_plan";
/// Opens a transaction in which all statements see the same moment.
pub(super) const BEGIN_SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// A prepared statement and its parameters.
pub(super) struct Step<'a> {
    pub statement: Statement,
    pub params: Vec<Param<'a>>,
}

impl<'a> Step<'a> {
    /// Prepares the statement unless this connection knows it already. Nothing is executed yet.
    pub async fn prepare(client: &ClientWrapper, sql: &str, params: Vec<Param<'a>>) -> StoreResult<Self> {
        let statement = client.prepare_cached(sql).await.map_err(not_done)?;
        Ok(Self { statement, params })
    }

    /// The same for several.
    pub async fn prepare_all(client: &ClientWrapper, all: Vec<BoundStatement<'a>>) -> StoreResult<Vec<Self>> {
        let mut steps = Vec::with_capacity(all.len());
        for (sql, params) in all {
            steps.push(Self::prepare(client, sql, params).await?);
        }
        Ok(steps)
    }
}

/// One statement of an open transaction whose commit is still to come: if it fails, nothing was done.
pub(super) async fn run(
    transaction: &Transaction<'_>,
    sql: &str,
    params: &[Param<'_>],
) -> StoreResult<Vec<Row>> {
    let statement = transaction.prepare_cached(sql).await.map_err(not_done)?;
    transaction.query(&statement, params).await.map_err(not_done)
}

/// Several statements of such a transaction in one round trip, one after the other; answers their rows in order.
pub(super) async fn run_all(
    transaction: &Transaction<'_>,
    statements: &[(&str, Vec<Param<'_>>)],
) -> StoreResult<Vec<Vec<Row>>> {
    let mut steps = Vec::with_capacity(statements.len());
    for (sql, params) in statements {
        steps.push((transaction.prepare_cached(sql).await.map_err(not_done)?, params));
    }
    let ran = join_all(steps.iter().map(|(statement, params)| transaction.query(statement, params))).await;
    ran.into_iter().collect::<Result<_, _>>().map_err(not_done)
}

/// Runs the steps in one transaction and answers their rows in order. The first error tells what became of it all: an
/// error answer to any step turns the commit into a rollback.
pub(super) async fn transact(
    client: &ClientWrapper,
    begin: &str,
    steps: &[Step<'_>],
) -> Result<Vec<Vec<Row>>, Error> {
    let begun = client.batch_execute(begin);
    let ran = join_all(steps.iter().map(|step| client.query(&step.statement, &step.params)));
    let committed = client.batch_execute("COMMIT");
    // Polled in this order for the first time, and the first poll is what sends.
    let (begun, ran, committed) = join3(begun, ran, committed).await;
    begun?;
    let rows = ran.into_iter().collect::<Result<_, _>>()?;
    committed?;
    Ok(rows)
}

/// A transaction in several round trips: what a later one writes follows from what an earlier one answered.
///
/// Whoever goes away in between takes the connection along, so that nobody finds it with a transaction open.
pub(super) struct OpenTransaction {
    client: Option<Client>,
}

impl OpenTransaction {
    /// Opens the transaction and runs the first steps; answers their rows in order.
    pub async fn begin(
        client: Client,
        begin: &str,
        steps: &[Step<'_>],
    ) -> Result<(Self, Vec<Vec<Row>>), Error> {
        let mut open_transaction = Self { client: Some(client) };
        let client = open_transaction.client();
        let ran = join_all(steps.iter().map(|step| client.query(&step.statement, &step.params)));
        let (begun, ran) = join(client.batch_execute(begin), ran).await;
        let rows = begun.and_then(|()| ran.into_iter().collect());
        if rows.is_err() && client.batch_execute("ROLLBACK").await.is_ok() {
            open_transaction.client = None;
        }
        rows.map(|rows| (open_transaction, rows))
    }

    /// The connection.
    pub fn client(&self) -> &Client {
        self.client.as_ref().expect("until the end")
    }

    /// Runs more steps; answers their rows in order. Whoever cannot go on after an error lets go of the transaction.
    pub async fn run(&self, steps: &[Step<'_>]) -> Result<Vec<Vec<Row>>, Error> {
        let client = self.client();
        let ran = join_all(steps.iter().map(|step| client.query(&step.statement, &step.params))).await;
        ran.into_iter().collect()
    }

    /// Runs the other steps and commits; answers their rows in order.
    pub async fn commit(mut self, steps: &[Step<'_>]) -> Result<Vec<Vec<Row>>, Error> {
        let client = self.client();
        let ran = join_all(steps.iter().map(|step| client.query(&step.statement, &step.params)));
        let (ran, committed) = join(ran, client.batch_execute("COMMIT")).await;
        self.client = None;
        let rows = ran.into_iter().collect::<Result<_, _>>()?;
        committed?;
        Ok(rows)
    }
}

impl Drop for OpenTransaction {
    fn drop(&mut self) {
        self.client.take().map(Client::take);
    }
}
