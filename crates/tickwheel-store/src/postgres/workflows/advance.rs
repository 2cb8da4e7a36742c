//! Runs on their way: carrying out what was decided about them.
//!
//! A batch is one transaction, and the number of its round trips does not depend on how much there is in it: lock the
//! runs and look at their revisions, lock the jobs, then write all that follows at once. Steps of one run are carried
//! out one after the other, in passes.

use std::collections::{BTreeSet, HashMap, HashSet};

use deadpool_postgres::Transaction;
use tickwheel_core::ports::{RunAdvanced, StepEffects, StoreResult};
use tickwheel_core::workflow::{ReconcileRequest, Run, RunStep};
use tickwheel_core::{JobId, RunId};
use uuid::Uuid;

use super::locks::{lock_jobs, lock_runs};
use super::reconcile_requests::REQUEST_RECONCILE;
use super::writes::{NoticeRows, ReconciledRows, RunRows, TaskRows};
use crate::dependency_edges::Ended;
use crate::postgres::PostgresStore;
use crate::postgres::dependencies::{Moved, Released, propagate};
use crate::postgres::error::{not_done, write_failed};
use crate::postgres::locks::HOLD_BACK_CLAIMS;
use crate::postgres::pipeline::{BoundStatement, run, run_all};
use crate::postgres::restore::{EndedRows, RetriedRows};
use crate::postgres::submit::Rows;
use crate::postgres::workers::write_routes;
use crate::task_changes::{Applied, ChangedTask};

/// Carries decisions out, all of them in one transaction.
pub(super) async fn advance_runs(store: &PostgresStore, steps: &[RunStep]) -> StoreResult<Vec<RunAdvanced>> {
    if steps.is_empty() {
        return Ok(Vec::new());
    }
    write_routes(store, steps.iter().flat_map(|step| &step.jobs)).await?;
    let mut client = store.client().await?;
    let transaction = client.transaction().await.map_err(not_done)?;
    if steps.iter().any(RunStep::pauses) {
        run(&transaction, HOLD_BACK_CLAIMS, &[]).await?;
    }
    let mut answers = vec![RunAdvanced::Stale; steps.len()];
    let mut new_queues = Vec::new();
    for pass in passes(steps) {
        let moves = decide(&transaction, steps, &pass).await?;
        let writes = Writes::of(&moves, store);
        let effects = writes.carry_out(&transaction, &moves).await?;
        for (step, effects) in moves.iter().zip(effects) {
            answers[step.position] = RunAdvanced::Done(effects);
        }
        new_queues.extend(writes.new.new_queues.iter().map(|queue| (*queue).to_owned()));
    }
    transaction.commit().await.map_err(write_failed)?;
    store.remember_queues(&new_queues.iter().map(String::as_str).collect::<Vec<_>>());
    Ok(answers)
}

/// Steps that can be carried out together, by their indexes: no run twice.
fn passes(steps: &[RunStep]) -> Vec<Vec<usize>> {
    let mut passes: Vec<Vec<usize>> = Vec::new();
    let mut left: Vec<usize> = (0..steps.len()).collect();
    while !left.is_empty() {
        let mut seen = HashSet::with_capacity(left.len());
        let (pass, later) = left.into_iter().partition(|position| seen.insert(steps[*position].run));
        passes.push(pass);
        left = later;
    }
    passes
}

/// A step that is valid, and what it makes of its run and jobs.
struct Move<'s> {
    position: usize,
    step: &'s RunStep,
    applied: Applied,
    before: Run,
    after: Run,
}

/// The steps of a pass whose runs have the expected revisions, under the locks of all that they change.
async fn decide<'s>(
    transaction: &Transaction<'_>,
    steps: &'s [RunStep],
    pass: &[usize],
) -> StoreResult<Vec<Move<'s>>> {
    let of_pass: Vec<&RunStep> = pass.iter().map(|position| &steps[*position]).collect();
    let ids: BTreeSet<RunId> = of_pass.iter().map(|step| step.run).collect();
    let mut runs = lock_runs(transaction, ids).await?;
    let jobs = lock_jobs(transaction, &of_pass).await?;
    let mut moves = Vec::with_capacity(pass.len());
    for position in pass {
        let step = &steps[*position];
        let Some(before) = runs.remove(&step.run).filter(|run| run.revision == step.revision) else {
            continue;
        };
        let applied = Applied::of(step, &jobs);
        let after = applied.run_after(&before, step);
        moves.push(Move { position: *position, step, applied, before, after });
    }
    Ok(moves)
}

/// All that a pass writes, as columns.
struct Writes<'m> {
    retried: RetriedRows<'m>,
    updated: TaskRows<'m>,
    ended: EndedRows<'m>,
    new: Rows<'m>,
    runs: RunRows,
    reconcile_requests: Vec<Uuid>,
    reconciled: ReconciledRows,
    notices: NoticeRows<'m>,
}

impl<'m> Writes<'m> {
    fn of(moves: &'m [Move<'_>], store: &PostgresStore) -> Self {
        let both = |task: &'m ChangedTask| (&task.before, &task.after);
        let retried = RetriedRows::of(moves.iter().flat_map(|m| m.applied.retried()).map(both));
        let ended = EndedRows::of(moves.iter().flat_map(|m| m.applied.ended()).map(|task| &task.after));
        let changed = moves.iter().filter(|m| m.after != m.before).map(|m| &m.after);
        let whole = |m: &Move<'_>| {
            m.applied.needs_reconcile(&m.after).then(|| ReconcileRequest::id_of_run(m.step.run))
        };
        let reconcile_requests: BTreeSet<JobId> =
            moves.iter().flat_map(|m| m.step.reconcile_requests.iter().copied().chain(whole(m))).collect();
        Self {
            updated: TaskRows::of(moves.iter().flat_map(|m| m.applied.updated()).map(both)),
            new: Rows::of(moves.iter().flat_map(|m| &m.step.jobs), store),
            runs: RunRows::of(changed),
            reconcile_requests: reconcile_requests.into_iter().map(JobId::as_uuid).collect(),
            reconciled: ReconciledRows::of(moves.iter().flat_map(|m| &m.step.reconciled)),
            notices: NoticeRows::of(moves.iter().map(|m| (&*m.step.notices, &m.after, m.step.now))),
            retried,
            ended,
        }
    }

    /// First the jobs themselves.
    fn moves(&self) -> Vec<BoundStatement<'_>> {
        let mut statements = self.retried.statements();
        statements.extend(self.updated.statement());
        statements.extend(self.ended.statements());
        statements
    }

    /// Then what is new, the runs, and the reconcile requests.
    fn rest<'w>(&'w self, reconcile_requests: &'w Vec<Uuid>) -> Vec<BoundStatement<'w>> {
        let mut statements = Vec::new();
        if !self.new.is_empty() {
            statements.extend(self.new.statements());
        }
        statements.extend(self.runs.statement());
        if !reconcile_requests.is_empty() {
            statements.push((REQUEST_RECONCILE, vec![reconcile_requests]));
        }
        statements.extend(self.reconciled.statement());
        statements.extend(self.notices.statement());
        statements
    }

    async fn carry_out(
        &self,
        transaction: &Transaction<'_>,
        moves: &[Move<'_>],
    ) -> StoreResult<Vec<StepEffects>> {
        let propagation = propagate(transaction, self.moves(), &moved(moves)).await?;
        let reconcile_requests: BTreeSet<Uuid> =
            self.reconcile_requests.iter().chain(&propagation.reconcile_requests).copied().collect();
        let reconcile_requests = reconcile_requests.into_iter().collect();
        let statements: Vec<BoundStatement<'_>> =
            propagation.statement().into_iter().chain(self.rest(&reconcile_requests)).collect();
        run_all(transaction, &statements).await?;
        let mut effects: Vec<StepEffects> = moves.iter().map(|m| m.applied.effects(m.step)).collect();
        let positions: HashMap<RunId, usize> =
            moves.iter().enumerate().map(|(n, m)| (m.step.run, n)).collect();
        for Released { job, parent } in propagation.released {
            // One that waited for a task at a stored edge was released by the step of that task's run.
            let run = RunId::of_task(parent.unwrap_or(job.due.id));
            if let Some(position) = positions.get(&run) {
                effects[*position].scheduled.push(job);
            }
        }
        Ok(effects)
    }
}

/// The jobs that the steps of a round ended or brought back.
fn moved<'m>(moves: &'m [Move<'_>]) -> Moved<'m> {
    let ended = moves.iter().flat_map(|m| m.applied.ended());
    let retried = moves.iter().flat_map(|m| m.applied.retried());
    Moved {
        ended: ended.filter_map(|task| Ended::of(&task.after)).collect(),
        retried: retried.map(|task| &task.after).collect(),
    }
}
