//! Runs on their way: carrying out what was decided about them.
//!
//! A batch is one transaction, and the number of its round trips does not depend on how much there is in it: lock the jobs, lock the runs and
//! look at their revisions, then write all that follows at once. Steps of one run are carried out one after the other, in rounds.

use std::collections::{BTreeSet, HashMap, HashSet};

use deadpool_postgres::Transaction;
use tickwheel_core::ports::{RunAdvanced, StepEffects, StoreResult};
use tickwheel_core::workflow::{Look, Run, RunStep};
use tickwheel_core::{Job, JobId, RunId};
use uuid::Uuid;

use super::locks::{lock_jobs, lock_runs};
use super::looks::ASK;
use super::writes::{LookedRows, LooseRows, NoticeRows, RunRows, Statement, TaskRows};
use crate::links::Edge;
use crate::postgres::PostgresStore;
use crate::postgres::dependencies::{EdgeRows, HOLD_AGAIN, RELEASE};
use crate::postgres::error::{not_done, write_failed};
use crate::postgres::pipeline::run_all;
use crate::postgres::refile::{Ended, Revived};
use crate::postgres::row::read_sound_jobs;
use crate::postgres::submit::Rows;
use crate::task_changes::{Applied, ChangedTask};

/// Carries decisions out, all of them in one transaction.
pub(super) async fn advance_runs(store: &PostgresStore, steps: &[RunStep]) -> StoreResult<Vec<RunAdvanced>> {
    if steps.is_empty() {
        return Ok(Vec::new());
    }
    let mut client = store.client().await?;
    let transaction = client.transaction().await.map_err(not_done)?;
    let mut answers = vec![RunAdvanced::Stale; steps.len()];
    let mut new_queues = Vec::new();
    for round in rounds(steps) {
        let moves = decide(&transaction, steps, &round).await?;
        let writes = Writes::of(&moves, store);
        let effects = writes.carry_out(&transaction, &moves).await?;
        for (step, effects) in moves.iter().zip(effects) {
            answers[step.place] = RunAdvanced::Done(effects);
        }
        new_queues.extend(writes.new.new_queues.iter().map(|queue| (*queue).to_owned()));
    }
    transaction.commit().await.map_err(write_failed)?;
    store.remember_queues(&new_queues.iter().map(String::as_str).collect::<Vec<_>>());
    Ok(answers)
}

/// Steps that can be carried out together, by their places: no run twice.
fn rounds(steps: &[RunStep]) -> Vec<Vec<usize>> {
    let mut rounds: Vec<Vec<usize>> = Vec::new();
    let mut left: Vec<usize> = (0..steps.len()).collect();
    while !left.is_empty() {
        let mut seen = HashSet::with_capacity(left.len());
        let (round, later) = left.into_iter().partition(|place| seen.insert(steps[*place].run));
        rounds.push(round);
        left = later;
    }
    rounds
}

/// A step that is valid, and what it makes of its run and jobs.
struct Move<'s> {
    place: usize,
    step: &'s RunStep,
    applied: Applied,
    before: Run,
    after: Run,
}

/// The steps of a round whose runs have the expected revisions, under the locks of all that they change.
async fn decide<'s>(
    transaction: &Transaction<'_>,
    steps: &'s [RunStep],
    round: &[usize],
) -> StoreResult<Vec<Move<'s>>> {
    let of_round: Vec<&RunStep> = round.iter().map(|place| &steps[*place]).collect();
    let jobs = lock_jobs(transaction, &of_round).await?;
    let ids: BTreeSet<RunId> = of_round.iter().map(|step| step.run).collect();
    let mut runs = lock_runs(transaction, ids).await?;
    let mut moves = Vec::with_capacity(round.len());
    for place in round {
        let step = &steps[*place];
        let Some(before) = runs.remove(&step.run).filter(|run| run.revision == step.revision) else {
            continue;
        };
        let applied = Applied::of(step, &jobs);
        let after = applied.run_after(&before, step);
        moves.push(Move { place: *place, step, applied, before, after });
    }
    Ok(moves)
}

/// All that a round writes, as columns.
struct Writes<'m> {
    revived: Revived<'m>,
    updated: TaskRows<'m>,
    ended: Ended<'m>,
    loose: LooseRows,
    new: Rows<'m>,
    edges: EdgeRows,
    runs: RunRows,
    looks: Vec<Uuid>,
    /// Their children have heard of them.
    moved: Vec<Uuid>,
    looked: LookedRows,
    notices: NoticeRows<'m>,
}

impl<'m> Writes<'m> {
    fn of(moves: &'m [Move<'_>], store: &PostgresStore) -> Self {
        let both = |task: &'m ChangedTask| (&task.before, &task.after);
        let revived = Revived::of(moves.iter().flat_map(|m| m.applied.revived()).map(both));
        let ended = Ended::of(moves.iter().flat_map(|m| m.applied.ended()).map(|task| &task.after));
        let expanded = moves.iter().flat_map(|m| &m.applied.tasks).filter(|task| task.was_expanded);
        let changed = moves.iter().filter(|m| m.after != m.before).map(|m| &m.after);
        let whole = |m: &Move<'_>| m.applied.asks_for_a_look(&m.after).then(|| Look::place_of(m.step.run));
        let looks: BTreeSet<JobId> =
            moves.iter().flat_map(|m| m.step.looks.iter().copied().chain(whole(m))).collect();
        Self {
            moved: revived.ids().iter().chain(ended.ids()).copied().collect(),
            updated: TaskRows::of(moves.iter().flat_map(|m| m.applied.updated()).map(both)),
            loose: LooseRows::of(expanded.map(|task| &task.after)),
            new: Rows::of(moves.iter().flat_map(|m| &m.step.jobs), store),
            edges: EdgeRows::of(moves.iter().flat_map(|m| &m.step.edges).map(Edge::from)),
            runs: RunRows::of(changed),
            looks: looks.into_iter().map(JobId::as_uuid).collect(),
            looked: LookedRows::of(moves.iter().flat_map(|m| &m.step.looked)),
            notices: NoticeRows::of(moves.iter().map(|m| (&*m.step.notices, &m.after, m.step.now))),
            revived,
            ended,
        }
    }

    /// In this order: the jobs; then those who wait for them, first of all for those that came back, so that nobody is let go too early; what is new;
    /// the runs; and what is to be looked at.
    fn statements(&self) -> Vec<Statement<'_>> {
        let mut statements = self.revived.statements();
        statements.extend(self.updated.statement());
        statements.extend(self.ended.statements());
        statements.extend(self.loose.statement());
        if !self.revived.ids().is_empty() {
            statements.push((HOLD_AGAIN, vec![self.revived.ids()]));
        }
        if !self.ended.ids().is_empty() {
            statements.push((RELEASE, vec![self.ended.ids()]));
        }
        if !self.new.is_empty() {
            statements.extend(self.new.statements());
        }
        statements.extend(self.edges.statement());
        statements.extend(self.runs.statement());
        if !self.looks.is_empty() || !self.moved.is_empty() {
            statements.push((ASK, vec![&self.looks, &self.moved]));
        }
        statements.extend(self.looked.statement());
        statements.extend(self.notices.statement());
        statements
    }

    async fn carry_out(
        &self,
        transaction: &Transaction<'_>,
        moves: &[Move<'_>],
    ) -> StoreResult<Vec<StepEffects>> {
        let statements = self.statements();
        let answers = run_all(transaction, &statements).await?;
        let told = statements.iter().position(|(sql, _)| *sql == RELEASE);
        let released = told.map(|place| read_sound_jobs(&answers[place])).unwrap_or_default();
        let mut effects: Vec<StepEffects> = moves.iter().map(|m| m.applied.effects(m.step)).collect();
        let places: HashMap<RunId, usize> = moves.iter().enumerate().map(|(n, m)| (m.step.run, n)).collect();
        for job in released {
            let place = runs_of(&job).find_map(|run| places.get(&run).copied());
            if let Some(place) = place {
                effects[place].scheduled.push(job);
            }
        }
        Ok(effects)
    }
}

/// The runs whose steps may have let a job go: its own; of a job outside of workflows those that it depends on tasks of.
fn runs_of(job: &Job) -> impl Iterator<Item = RunId> {
    let own = job.spec.place.as_ref().map(|place| place.run);
    let others = job.spec.depends_on.iter().copied().map(RunId::of_task).filter(move |_| own.is_none());
    own.into_iter().chain(others)
}
