//! A definition that was checked, and made ready to be run: nodes by number instead of tasks by name.
//!
//! Checked in time linear in tasks and edges: names, dependencies, cycles, references. The tasks of one scope have
//! numbers that follow each other; scope 0 is the graph itself (with the tasks that come before all others), scope 1
//! the tasks that come after, the rest are the bodies of fan-outs.

mod check;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use serde_json::Value;

use super::condition::Condition;
use super::definition::{Each, OnFailure, TaskSpec, TriggerRule, Work, WorkflowSpec};
use super::path::Path;
use super::position::{FIRST_INDEX, TaskPosition};
use crate::id::{JobId, RunId};
use crate::parents::Release;
use crate::schedule::JobTemplate;

pub use check::{GraphFault, GraphFaultKind, GraphLimits};

/// The scope of the graph itself.
pub const SCOPE_TOP: usize = 0;
/// The scope of the tasks that come after all others.
pub const SCOPE_AFTER: usize = 1;

/// Tasks that can wait for each other.
#[derive(Clone, Debug)]
pub struct Scope {
    /// Their numbers.
    pub nodes: Range<u32>,
    /// The same, each after all that it waits for.
    pub order: Vec<u32>,
    /// Those that nothing waits for.
    pub sinks: Vec<u32>,
    /// The fan-out whose body it is.
    pub owner: Option<u32>,
    /// How many fan-outs it is inside of.
    pub depth: usize,
}

/// A task that was checked.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its name.
    pub name: Arc<str>,
    /// Where it is.
    pub scope: usize,
    /// It waits for these.
    pub parents: Vec<u32>,
    /// These wait for it.
    pub children: Vec<u32>,
    /// When it may start.
    pub rule: TriggerRule,
    /// It is skipped unless this holds.
    pub when: Option<Condition>,
    /// What it does.
    pub work: NodeWork,
    /// It is there for when things fail, and goes on when they do.
    pub failure_tolerated: bool,
    /// Who releases it.
    pub release: Release,
}

/// What a node does.
#[derive(Clone, Debug)]
pub enum NodeWork {
    /// One job.
    Job(Template),
    /// The same for each element of an array.
    ForEach {
        /// Where the array is.
        over: Path,
        /// More elements are refused.
        max_items: u32,
        /// So many at a time.
        concurrency: Option<u32>,
        /// What is done for each.
        each: NodeEach,
    },
}

/// What is done for each element.
#[derive(Clone, Debug)]
pub enum NodeEach {
    /// One job.
    Job(Template),
    /// The tasks of this scope.
    Scope(usize),
}

/// A job without its data, and the data as it was written.
#[derive(Clone, Debug)]
pub struct Template {
    /// The job.
    pub job: JobTemplate,
    /// Its payload, where it refers to data of others.
    pub payload: Option<Value>,
    /// Whether it refers to results of tasks, which have to be there first.
    pub uses_results: bool,
}

/// A definition that was checked.
#[derive(Clone, Debug)]
pub struct Graph {
    /// Its tasks.
    pub nodes: Vec<Node>,
    /// Where they are.
    pub scopes: Vec<Scope>,
    /// What becomes of a run when a task fails.
    pub on_failure: OnFailure,
}

impl Graph {
    /// The requested graph, or everything that is wrong with it.
    pub fn checked(spec: &WorkflowSpec, limits: GraphLimits) -> Result<Self, Vec<GraphFault>> {
        check::checked(spec, limits)
    }

    /// The graph of a definition that was checked when it was stored.
    pub fn stored(spec: &WorkflowSpec) -> Result<Self, Vec<GraphFault>> {
        Self::checked(spec, GraphLimits::NONE)
    }

    /// A node.
    pub fn node(&self, node: u32) -> &Node {
        &self.nodes[node as usize]
    }

    /// The number, in a run, of a node's job that is seen from `position`: a sibling, or in one of the scopes around.
    pub fn index_seen_from(&self, position: &TaskPosition, node: u32) -> u32 {
        let scope = &self.scopes[self.node(node).scope];
        let first = match scope.depth.checked_sub(1) {
            Some(iteration) => position.iterations[iteration].first,
            None if self.node(node).scope == SCOPE_AFTER => {
                position.index - (position.node - scope.nodes.start)
            }
            None => FIRST_INDEX,
        };
        first + (node - scope.nodes.start)
    }

    /// The job of a node that is seen from `position`.
    pub fn job_seen_from(&self, position: &TaskPosition, node: u32) -> JobId {
        JobId::of_task(position.run, self.index_seen_from(position, node))
    }

    /// The node that a name means in `node`: one it waits for, or one that a fan-out around it waits for.
    pub fn source(&self, node: u32, name: &str) -> Option<u32> {
        let mut at = node;
        loop {
            let found =
                self.node(at).parents.iter().copied().find(|parent| &*self.node(*parent).name == name);
            if found.is_some() {
                return found;
            }
            at = self.scopes[self.node(at).scope].owner?;
        }
    }

    /// What people call a job of a run: `load`, or `load[3].check` inside of a fan-out.
    pub fn path_of(&self, position: &TaskPosition) -> String {
        let mut path = String::new();
        let mut chain = vec![position.node];
        while let Some(owner) = self.scopes[self.node(chain[chain.len() - 1]).scope].owner {
            chain.push(owner);
        }
        let mut iterations = position.iterations.iter();
        for node in chain.into_iter().rev() {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(&self.node(node).name);
            if let Some(iteration) = iterations.next() {
                path.push_str(&format!("[{}]", iteration.item));
            }
        }
        path
    }

    /// The node of the outermost scope that a node is, or is inside of.
    pub fn outermost(&self, node: u32) -> u32 {
        let mut at = node;
        while let Some(owner) = self.scopes[self.node(at).scope].owner {
            at = owner;
        }
        at
    }

    /// Whether a position is in one of the tasks that come after all others.
    pub fn comes_after(&self, position: &TaskPosition) -> bool {
        self.node(self.outermost(position.node)).scope == SCOPE_AFTER
    }

    /// How many jobs a run has when it starts.
    pub fn begins_with(&self) -> u32 {
        let top = &self.scopes[SCOPE_TOP].nodes;
        top.end - top.start
    }

    /// The id of a job of the outermost scope.
    pub fn top_job(run: RunId, node: u32) -> JobId {
        JobId::of_task(run, FIRST_INDEX + node)
    }
}

/// The numbers of the nodes by their names.
type Names<'s> = HashMap<&'s str, u32>;

/// The tasks inside of a fan-out.
fn body(task: &TaskSpec) -> Option<&[TaskSpec]> {
    match &task.work {
        Work::ForEach(each) => match &each.each {
            Each::Tasks(tasks) => Some(tasks),
            Each::Job(_) => None,
        },
        Work::Job(_) => None,
    }
}
