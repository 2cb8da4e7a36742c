//! Statements that go to the server together: one round trip for a whole transaction.
//!
//! Nothing is awaited between the statements, so the transaction is open on the server only as long as it takes to run it, and a
//! caller that goes away in the middle leaves nothing open: the commit was sent with the rest.

use deadpool_postgres::{ClientWrapper, Transaction};
use futures::future::{join_all, join3};
use tickwheel_core::ports::StoreResult;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row, Statement};

use super::error::not_done;

/// A parameter of a statement.
pub(super) type Param<'a> = &'a (dyn ToSql + Sync);

/// Opens a transaction in which every statement sees what was committed before it.
pub(super) const BEGIN: &str = "BEGIN";
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

/// Runs the steps in one transaction and answers their rows in order. The first error tells what became of it all: an error
/// answer to any step turns the commit into a rollback.
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
