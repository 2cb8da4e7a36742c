//! The short way of tasks whose end is none of the conductor's business: they are said to have completed, and the counts let everybody go who waits for them.
//!
//! The runs count first, which locks them, and the children are told by a statement that does nothing else. All that is in the belief that no settlement will be refused; if
//! one is, everything is undone and goes the long way.

use tickwheel_core::ports::{Settled, SettledBatch, StartTasks, StoreResult};
use tickwheel_core::settle::{Next, Settlement};
use uuid::Uuid;

use super::batch::Finish;
use crate::links::Ended;
use crate::postgres::PostgresStore;
use crate::postgres::dependencies::{
    EndRows, RELEASE_AND_ASK, StartRows, TallyRows, read_moved, read_started, read_told,
};
use crate::postgres::error::{not_done, write_failed};
use crate::postgres::locks::BEGIN_CLAIM;
use crate::postgres::pipeline::{Halfway, Step};
use crate::postgres::row::column;
use crate::postgres::workflows::looks::ASK;

/// Whether a batch may go the short way.
pub(super) fn is_counted(settlements: &[Settlement]) -> bool {
    settlements.iter().all(|settlement| {
        matches!(settlement.next, Next::Complete { .. })
            && settlement.place().is_some_and(|place| place.counted)
    })
}

/// Writes the ends and starts what they let go. `None`: one was refused, and nothing is done.
pub(super) async fn settle_counted(
    store: &PostgresStore,
    settlements: &[Settlement],
    finish: &Finish<'_>,
    start: &StartTasks,
) -> StoreResult<Option<SettledBatch>> {
    let ended: Vec<Ended<'_>> = settlements.iter().filter_map(Ended::by).collect();
    let rows = TallyRows::of(&ended).with_runs(&ended);
    let client = store.client().await?;
    let (count, runs) = rows.count_in_runs();
    let steps = [
        Step::prepare(&client, count, runs).await?,
        Step::prepare(&client, finish.statement(), finish.params()).await?,
    ];
    let (halfway, answers) = Halfway::begin(client, BEGIN_CLAIM, &steps).await.map_err(not_done)?;
    let finished: Vec<Option<Uuid>> =
        answers[1].iter().map(|row| column(row, 0)).collect::<StoreResult<_>>()?;
    if finished.iter().flatten().count() < settlements.len() {
        halfway.roll_back().await.map_err(not_done)?;
        return Ok(None);
    }
    let counted: Vec<(bool, bool, Uuid)> = answers[0]
        .iter()
        .map(|row| Ok((column(row, 0)?, column(row, 1)?, column(row, 2)?)))
        .collect::<StoreResult<_>>()?;
    let is_spoiled = counted.iter().any(|(is_spoiled, ..)| *is_spoiled);
    let wanted: Vec<Uuid> =
        counted.iter().filter(|(_, is_wanted, _)| *is_wanted).map(|(.., run)| *run).collect();
    let has_edges = finished.len() > settlements.len();

    let (start, ends) = (StartRows::of(start), EndRows::of(&ended));
    // Where something went wrong before, there may be something to look at; but the runs have counted.
    let in_spoiled = is_spoiled.then(|| TallyRows::of(&ended));
    let starting = match &in_spoiled {
        Some(rows) => rows.start(&start),
        None => rows.start_counted(&start),
    };
    let starts = usize::from(starting.is_some());
    let edges = has_edges.then(|| (RELEASE_AND_ASK, ends.params()));
    let asking = (!wanted.is_empty()).then(|| (ASK, vec![&wanted as _]));
    let mut steps = Vec::new();
    for (sql, params) in starting.into_iter().chain(edges).chain(asking) {
        steps.push(Step::prepare(halfway.client(), sql, params).await?);
    }
    let answers = halfway.commit(&steps).await.map_err(write_failed)?;
    let (in_the_run, others) = answers.split_at(starts);
    let mut told = match in_the_run.first() {
        Some(rows) if is_spoiled => read_started(rows)?,
        Some(rows) => read_moved(rows),
        None => read_told([]),
    };
    told.looks |= !wanted.is_empty();
    let by_edges = read_told(others.iter().take(usize::from(has_edges)).flatten());
    Ok(Some(told.and(by_edges).in_batch(vec![Settled::Applied; settlements.len()])))
}
