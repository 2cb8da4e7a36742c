//! What ends and retries of jobs mean to those who wait for them: read under locks, decided by the core, written as
//! columns.

use std::collections::{BTreeMap, BTreeSet};

use deadpool_postgres::Transaction;
use tickwheel_core::id::IdMap;
use tickwheel_core::parents::{EdgeKind, ParentEnds, Parents, Propagated, WaitingJob};
use tickwheel_core::ports::{DueJob, Scheduled, StoreResult};
use tickwheel_core::{Job, JobId, TargetKind, Timestamp};
use tokio_postgres::Row;
use tracing::error;
use uuid::Uuid;

use super::{CLOSE_EDGES, READ_TASKS, REOPEN_EDGES, WRITE_CHILDREN};
use crate::columns::{decode_count, decode_release, decode_state, decode_target};
use crate::dependency_edges::{EdgeState, Ended, dependents, ends_by_child};
use crate::postgres::claim::read_due_job;
use crate::postgres::pipeline::{BoundStatement, run_all};
use crate::postgres::row::{column, count, read_sound};

/// Jobs that have moved: some have ended, some are to run again, some both in this order.
#[derive(Default)]
pub(in crate::postgres) struct Moved<'j> {
    /// They ended; no one twice.
    pub ended: Vec<Ended<'j>>,
    /// They had failed and are to run again.
    pub retried: Vec<&'j Job>,
}

impl<'j> Moved<'j> {
    /// Jobs that ended.
    pub fn ended(ended: impl IntoIterator<Item = Ended<'j>>) -> Self {
        Self { ended: ended.into_iter().collect(), retried: Vec::new() }
    }

    /// The tasks that wait for them, by id.
    pub fn waiting_tasks(&self) -> Vec<Uuid> {
        let places = self.ended.iter().filter_map(|end| end.position);
        let places = places.chain(self.retried.iter().filter_map(|job| job.spec.position.as_ref()));
        let tasks: BTreeSet<JobId> = places.flat_map(dependents).map(|(child, _)| child).collect();
        tasks.into_iter().map(JobId::as_uuid).collect()
    }
}

/// The statements that find and lock those who wait, as columns.
pub(in crate::postgres) struct Lookup {
    ended: Vec<Uuid>,
    edge_states: Vec<i16>,
    retried: Vec<Uuid>,
    tasks: Vec<Uuid>,
}

impl Lookup {
    /// Of those who wait for these.
    pub fn of(moved: &Moved<'_>) -> Self {
        Self { tasks: moved.waiting_tasks(), ..Self::by_edges(moved) }
    }

    /// Of those who wait for these by stored edges.
    pub fn by_edges(moved: &Moved<'_>) -> Self {
        Self {
            ended: moved.ended.iter().map(|end| end.id.as_uuid()).collect(),
            edge_states: moved.ended.iter().map(|end| EdgeState::of(end.state).code()).collect(),
            retried: moved.retried.iter().map(|job| job.id.as_uuid()).collect(),
            tasks: Vec::new(),
        }
    }

    /// To be run after the jobs themselves were moved.
    pub fn statements(&self) -> Vec<BoundStatement<'_>> {
        let mut statements: Vec<BoundStatement<'_>> = Vec::new();
        if !self.retried.is_empty() {
            statements.push((REOPEN_EDGES, vec![&self.retried]));
        }
        if !self.ended.is_empty() {
            statements.push((CLOSE_EDGES, vec![&self.ended, &self.edge_states]));
        }
        if !self.tasks.is_empty() {
            statements.push((READ_TASKS, vec![&self.tasks]));
        }
        statements
    }

    /// The answers to [`statements`](Self::statements), which begin the rest.
    pub fn read<'r>(&self, answers: &mut impl Iterator<Item = &'r Vec<Row>>) -> Children {
        let mut rows_if =
            |asked: bool| if asked { answers.next().map_or(&[][..], Vec::as_slice) } else { &[] };
        let mut children = Children::default();
        children.reopened = children.add(rows_if(!self.retried.is_empty()));
        children.closed = children.add(rows_if(!self.ended.is_empty()));
        children.add(rows_if(!self.tasks.is_empty()));
        children
    }
}

/// Those who wait for jobs that have moved.
#[derive(Default)]
pub(in crate::postgres) struct Children {
    by_id: BTreeMap<JobId, Child>,
    /// Children, and their parents at edges that were reopened,
    reopened: Vec<(JobId, Vec<JobId>)>,
    /// or closed.
    closed: Vec<(JobId, Vec<JobId>)>,
}

/// A job that waits, and what has become of it.
struct Child {
    due: DueJob,
    target: TargetKind,
    job: WaitingJob,
    changed: bool,
    due_at: Option<Timestamp>,
    wants_reconcile: bool,
    /// One of its parents at the other end of a stored edge.
    parent: Option<JobId>,
}

impl Children {
    /// Adds those of an answer to one of [`Lookup`]'s statements, or to [`READ_TASKS`] alone. One that makes no sense
    /// is left alone: it must not keep the others from running.
    pub fn add(&mut self, rows: &[Row]) -> Vec<(JobId, Vec<JobId>)> {
        let children = read_sound(rows, read_child, |job_id, cause| {
            error!(?job_id, %cause, "a job cannot be read and is left alone");
        });
        let mut parents_of = Vec::new();
        for (child, parents) in children {
            parents_of.push((child.due.id, parents));
            self.by_id.entry(child.due.id).or_insert(child);
        }
        parents_of
    }

    /// Adds those that were found later.
    pub fn extend(&mut self, others: Self) {
        self.by_id.extend(others.by_id);
        self.reopened.extend(others.reopened);
        self.closed.extend(others.closed);
    }

    /// What becomes of them. They wait for those that are to run again before they hear of those that ended, so that
    /// nobody is released too early.
    pub fn follow(mut self, moved: &Moved<'_>) -> Propagation {
        for ((child, edge), retried) in self.retries(moved) {
            self.change(child, |job| job.after_retries(edge, retried));
        }
        for ((child, edge), ends) in self.ends(moved) {
            self.change(child, |job| job.after_ends(edge, ends));
        }
        Propagation::of(self.by_id.into_values().filter(|child| child.changed))
    }

    fn change(&mut self, id: JobId, follow: impl FnOnce(WaitingJob) -> Option<Propagated>) {
        let Some(child) = self.by_id.get_mut(&id) else { return };
        let Some(after) = follow(child.job) else { return };
        child.changed = true;
        child.job = after.job;
        child.due_at = after.due_at;
        child.wants_reconcile |= after.wants_reconcile;
    }

    fn retries(&self, moved: &Moved<'_>) -> BTreeMap<(JobId, EdgeKind), u32> {
        let stored =
            self.reopened.iter().map(|(child, parents)| ((*child, EdgeKind::Stored), parents.len() as u32));
        let places = moved.retried.iter().filter_map(|job| job.spec.position.as_ref());
        let in_runs = places.flat_map(dependents).map(|edge| (edge, 1));
        let mut retries = BTreeMap::new();
        for (edge, retried) in stored.chain(in_runs) {
            *retries.entry(edge).or_default() += retried;
        }
        retries
    }

    fn ends(&self, moved: &Moved<'_>) -> BTreeMap<(JobId, EdgeKind), ParentEnds> {
        let mut ends = ends_by_child(&moved.ended);
        if !self.closed.is_empty() {
            let by_id: IdMap<JobId, &Ended<'_>> = moved.ended.iter().map(|end| (end.id, end)).collect();
            for (child, parents) in &self.closed {
                let of_child = ends.entry((*child, EdgeKind::Stored)).or_default();
                for end in parents.iter().filter_map(|parent| by_id.get(parent)) {
                    of_child.count(end.state, end.at);
                }
            }
        }
        ends
    }
}

fn read_child(row: &Row) -> StoreResult<(Child, Vec<JobId>)> {
    let parents: Option<Vec<Uuid>> = column(row, 14)?;
    let parents: Vec<JobId> = parents.into_iter().flatten().map(JobId::from_uuid).collect();
    let job = WaitingJob {
        state: decode_state(column::<i16>(row, 10)?.into())?,
        parents: Parents {
            open: decode_count("open parents", column::<i32>(row, 11)?.into())?,
            failed: decode_count("failed parents", column::<i32>(row, 12)?.into())?,
        },
        release: decode_release(column::<i16>(row, 6)?.into())?,
        execute_at: Timestamp::from_millis(column(row, 13)?),
    };
    let child = Child {
        due: read_due_job(row)?,
        target: decode_target(column::<i16>(row, 9)?.into())?,
        job,
        changed: false,
        due_at: None,
        wants_reconcile: false,
        parent: parents.first().copied(),
    };
    Ok((child, parents))
}

/// A job that waits for nobody any more, and a parent of it if it waited at a stored edge.
pub(in crate::postgres) struct Released {
    pub job: Scheduled,
    pub parent: Option<JobId>,
}

/// What became of those who waited, as columns.
#[derive(Default)]
pub(in crate::postgres) struct Propagation {
    ids: Vec<Uuid>,
    open_parents: Vec<i32>,
    failed_parents: Vec<i32>,
    states: Vec<i16>,
    due_at: Vec<Option<i64>>,
    /// They wait for nobody any more.
    pub released: Vec<Released>,
    /// The jobs of which a reconcile is requested.
    pub reconcile_requests: Vec<Uuid>,
}

impl Propagation {
    fn of(changed: impl Iterator<Item = Child>) -> Self {
        let mut propagation = Self::default();
        for child in changed {
            propagation.push(child);
        }
        propagation
    }

    fn push(&mut self, child: Child) {
        let id = child.due.id.as_uuid();
        self.ids.push(id);
        self.open_parents.push(count(child.job.parents.open));
        self.failed_parents.push(count(child.job.parents.failed));
        self.states.push(child.job.state.code());
        self.due_at.push(child.due_at.map(Timestamp::as_millis));
        if child.wants_reconcile {
            self.reconcile_requests.push(id);
        }
        if let Some(due_at) = child.due_at {
            let job = Scheduled { due: DueJob { due_at, ..child.due }, target: child.target, route: None };
            self.released.push(Released { job, parent: child.parent });
        }
    }

    /// Writes it down, if there is anything.
    pub fn statement(&self) -> Option<BoundStatement<'_>> {
        let params: BoundStatement<'_> = (
            WRITE_CHILDREN,
            vec![&self.ids, &self.open_parents, &self.failed_parents, &self.states, &self.due_at],
        );
        (!self.ids.is_empty()).then_some(params)
    }
}

/// Moves jobs and finds out what that means to those who wait for them.
pub(in crate::postgres) async fn propagate(
    transaction: &Transaction<'_>,
    moves: Vec<BoundStatement<'_>>,
    moved: &Moved<'_>,
) -> StoreResult<Propagation> {
    let lookup = Lookup::of(moved);
    let count = moves.len();
    let statements: Vec<BoundStatement<'_>> = moves.into_iter().chain(lookup.statements()).collect();
    let answers = run_all(transaction, &statements).await?;
    Ok(lookup.read(&mut answers.iter().skip(count)).follow(moved))
}
