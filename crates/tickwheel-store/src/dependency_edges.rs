//! The dependency edges between jobs that wait and the jobs they wait for, the same in both stores: one edge per
//! parent, which mirrors the state of that parent. Tasks of a workflow have no stored edges: who waits for whom in a
//! run is known from the positions of its jobs.
//!
//! Invariant: an edge is open exactly as long as its parent has not ended. Whoever ends or retries a parent changes its
//! edges in the same transaction; whoever makes edges has seen to it that no parent ends or is retried meanwhile.
//! Deliberately not here: SQL, and what the counts mean to a child (that is [`tickwheel_core::parents`]).

use std::collections::{BTreeMap, BTreeSet};

use tickwheel_core::id::IdMap;
use tickwheel_core::parents::{EdgeKind, ParentEnds, Parents};
use tickwheel_core::settle::Settlement;
use tickwheel_core::workflow::{TaskEnds, TaskPosition};
use tickwheel_core::{Job, JobId, RunId, State, Timestamp};

/// How the parent of an edge stands. The numbers are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EdgeState {
    /// It has not ended.
    Open = 0,
    /// It ended well.
    Completed = 1,
    /// It ended other than well.
    Failed = 2,
}

impl EdgeState {
    /// That of a parent in this state.
    pub const fn of(parent: State) -> Self {
        match parent {
            State::Completed => Self::Completed,
            _ if parent.is_terminal() => Self::Failed,
            _ => Self::Open,
        }
    }

    /// Its number.
    pub const fn code(self) -> i16 {
        self as i16
    }
}

/// A child waits, or waited, for a parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    pub parent: JobId,
    pub child: JobId,
    pub state: EdgeState,
}

/// Who waits for the job at this position of a run.
pub(crate) fn dependents(position: &TaskPosition) -> impl Iterator<Item = (JobId, EdgeKind)> {
    let children = position.child_ids().map(|child| (child, EdgeKind::Task));
    children.chain(position.fan_out_task_id().map(|fan_out| (fan_out, EdgeKind::FanOut)))
}

/// A job that has ended, and when.
pub(crate) struct Ended<'j> {
    pub id: JobId,
    pub state: State,
    pub at: Timestamp,
    /// Its position in a run, of a task.
    pub position: Option<&'j TaskPosition>,
}

impl<'j> Ended<'j> {
    /// A job that is over.
    pub fn of(job: &'j Job) -> Option<Self> {
        Some(Self {
            id: job.id,
            state: job.state(),
            at: job.completed_at?,
            position: job.spec.position.as_ref(),
        })
    }

    /// What an attempt ended, if it ended anything but itself.
    pub fn by(settlement: &'j Settlement) -> Option<Self> {
        let state = settlement.next.state();
        let (id, at) = (settlement.job_id, settlement.ended_at);
        state.is_terminal().then(|| Self { id, state, at, position: settlement.position() })
    }
}

/// What ends mean to those who wait, in the order of their ids.
pub(crate) type EndsByChild = BTreeMap<(JobId, EdgeKind), ParentEnds>;

/// What ends mean to the tasks of the same run that wait for them.
pub(crate) fn ends_by_child(ended: &[Ended<'_>]) -> EndsByChild {
    // Many parents have the same children: what is put in order is each of those once.
    let mut by_task: IdMap<JobId, ParentEnds> = IdMap::default();
    let mut by_child = EndsByChild::new();
    for parent in ended {
        for (child, edge) in parent.position.into_iter().flat_map(dependents) {
            let ends = match edge {
                EdgeKind::Task => by_task.entry(child).or_default(),
                edge => by_child.entry((child, edge)).or_default(),
            };
            ends.count(parent.state, parent.at);
        }
    }
    by_child.extend(by_task.into_iter().map(|(child, ends)| ((child, EdgeKind::Task), ends)));
    by_child
}

/// What ends mean to the runs that they are tasks of.
pub(crate) fn ends_by_run(ended: &[Ended<'_>]) -> BTreeMap<RunId, TaskEnds> {
    let mut by_run: BTreeMap<RunId, TaskEnds> = BTreeMap::new();
    for (run, task) in ended.iter().filter_map(|task| Some((task.position?.run, task))) {
        by_run.entry(run).or_default().count(task.state);
    }
    by_run
}

/// The edges from a job to its parents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ParentEdges {
    /// One a parent, however often it was named.
    pub edges: Vec<Edge>,
    /// How they stand.
    pub parents: Parents,
}

/// What a store has found of the jobs that others depend on.
#[derive(Debug, Default)]
pub(crate) struct FoundParents(IdMap<JobId, Found>);

#[derive(Debug)]
struct Found {
    tenant: String,
    state: State,
}

impl FoundParents {
    /// This one exists.
    pub fn add(&mut self, id: JobId, tenant: &str, state: State) {
        self.0.insert(id, Found { tenant: tenant.to_owned(), state });
    }

    /// Whether it was found.
    pub fn contains(&self, id: JobId) -> bool {
        self.0.contains_key(&id)
    }

    /// How those stand that the job waits for.
    pub fn counted(&self, child: &Job) -> Parents {
        let parents: BTreeSet<JobId> = child.waits_for().into_iter().collect();
        Parents::of(parents.iter().filter_map(|id| self.0.get(id)).map(|found| found.state))
    }

    /// The edges from the job to its parents, or the first parent that its tenant does not have.
    pub fn edges_to(&self, child: &Job) -> Result<ParentEdges, JobId> {
        let mut states = BTreeMap::new();
        for id in &child.spec.depends_on {
            let found = self.0.get(id).filter(|found| *found.tenant == *child.tenant).ok_or(*id)?;
            states.insert(*id, found.state);
        }
        let parents = Parents::of(states.values().copied());
        let edge = |(parent, state)| Edge { parent, child: child.id, state: EdgeState::of(state) };
        Ok(ParentEdges { edges: states.into_iter().map(edge).collect(), parents })
    }
}

#[cfg(test)]
mod tests {
    use tickwheel_testkit::fixtures::{at, job, job_id};

    use super::*;

    #[test]
    fn a_parent_named_twice_is_one_parent() {
        let (open, failed) = (job_id(at(0), 1), job_id(at(0), 2));
        let child = job().depends_on([failed, open, failed]).build();
        let mut found = FoundParents::default();
        found.add(open, &child.tenant, State::Paused);
        found.add(failed, &child.tenant, State::Cancelled);
        let edges = found.edges_to(&child).expect("both are there");
        assert_eq!(edges.parents, Parents { open: 1, failed: 1 });
        let edges: Vec<_> = edges.edges.iter().map(|edge| (edge.parent, edge.state.code())).collect();
        assert_eq!(edges, [(open, 0), (failed, 2)]);
    }

    #[test]
    fn the_first_parent_that_the_tenant_does_not_have_is_named() {
        let (own, foreign, nobodys) = (job_id(at(0), 1), job_id(at(0), 2), job_id(at(0), 3));
        let mut found = FoundParents::default();
        found.add(own, "acme", State::Completed);
        found.add(foreign, "zoo", State::Completed);
        let child = |parents: [JobId; 2]| job().tenant("acme").depends_on(parents).build();
        assert_eq!(found.edges_to(&child([own, foreign])), Err(foreign));
        assert_eq!(found.edges_to(&child([nobodys, foreign])), Err(nobodys));
    }
}
