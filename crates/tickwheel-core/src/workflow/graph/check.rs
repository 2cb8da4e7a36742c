//! What makes a definition a graph, and what is wrong with one that is none.

use std::collections::HashMap;
use std::fmt;

use serde_json::Value;

use super::{Graph, Names, Node, NodeEach, NodeWork, Scope, Template, body};
use crate::parents::Release;
use crate::schedule::JobTemplate;
use crate::workflow::condition::Condition;
use crate::workflow::data::references;
use crate::workflow::definition::{Each, ForEach, TaskSpec, TriggerRule, Work, WorkflowSpec};
use crate::workflow::path::{INDEX, INPUT, ITEM, OUTER, Path, RESERVED, RUN, is_name_char};

/// The longest name of a task.
const NAME_LEN_MAX: usize = 100;
/// The deepest nesting of fan-outs.
const DEPTH_MAX: usize = 4;
/// A definition with more faults than this is not looked at further.
const FAULTS_MAX: usize = 100;
/// What can be asked of a task.
const ASPECTS: [&str; 3] = ["result", "status", "error"];

/// How large a definition may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphLimits {
    /// So many tasks.
    pub tasks_max: usize,
    /// So many dependencies.
    pub edges_max: usize,
}

impl GraphLimits {
    /// As large as can be: for what was checked before.
    pub const NONE: Self = Self { tasks_max: usize::MAX, edges_max: usize::MAX };
}

impl Default for GraphLimits {
    fn default() -> Self {
        Self { tasks_max: 10_000, edges_max: 100_000 }
    }
}

/// Something wrong with a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphFault {
    /// Where: a JSON pointer into the definition.
    pub pointer: String,
    /// What.
    pub kind: GraphFaultKind,
}

/// What can be wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GraphFaultKind {
    /// There is no task at all.
    NoTasks,
    /// A name that cannot be one.
    BadName(String),
    /// A name that another task has.
    Duplicate(String),
    /// A dependency that does not exist, and what may have been meant.
    Unknown(String, Option<String>),
    /// Tasks that wait for each other: the first one is also the last.
    Cycle(Vec<String>),
    /// More than there may be.
    TooMany(&'static str, usize),
    /// A reference, condition or array that cannot be.
    BadReference(String),
}

impl fmt::Display for GraphFaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTasks => f.write_str("a workflow needs at least one task"),
            Self::BadName(why) => f.write_str(why),
            Self::Duplicate(name) => write!(f, "there is another task named {name:?}"),
            Self::Unknown(name, None) => write!(f, "there is no task named {name:?}"),
            Self::Unknown(name, Some(near)) => {
                write!(f, "there is no task named {name:?}; did you mean {near:?}?")
            }
            Self::Cycle(path) => write!(f, "tasks wait for each other: {}", path.join(" -> ")),
            Self::TooMany(what, max) => write!(f, "more than {max} {what}"),
            Self::BadReference(why) => f.write_str(why),
        }
    }
}

/// Tasks of one scope that are still to be looked at.
struct Waiting<'s> {
    scope: usize,
    tasks: Vec<(String, &'s TaskSpec)>,
}

struct Checker<'s> {
    limits: GraphLimits,
    graph: Graph,
    faults: Vec<GraphFault>,
    edges: usize,
    todo: Vec<Waiting<'s>>,
}

pub(super) fn checked(spec: &WorkflowSpec, limits: GraphLimits) -> Result<Graph, Vec<GraphFault>> {
    let graph = Graph { nodes: Vec::new(), scopes: Vec::new(), on_failure: spec.on_failure };
    let mut checker = Checker { limits, graph, faults: Vec::new(), edges: 0, todo: Vec::new() };
    if spec.tasks.is_empty() {
        checker.fault("/tasks", GraphFaultKind::NoTasks);
    }
    let top = located("/before", &spec.before).chain(located("/tasks", &spec.tasks)).collect();
    checker.scope(top, None, 0, spec.before.len());
    checker.scope(located("/after", &spec.after).collect(), None, 0, 0);
    while let Some(Waiting { scope, tasks }) = checker.todo.pop() {
        checker.fill(scope, &tasks);
    }
    if checker.faults.is_empty() { Ok(checker.graph) } else { Err(checker.faults) }
}

fn located<'s>(at: &str, tasks: &'s [TaskSpec]) -> impl Iterator<Item = (String, &'s TaskSpec)> {
    tasks.iter().enumerate().map(move |(index, task)| (format!("{at}/{index}"), task))
}

impl<'s> Checker<'s> {
    fn fault(&mut self, pointer: impl Into<String>, kind: GraphFaultKind) {
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(GraphFault { pointer: pointer.into(), kind });
        }
    }

    /// Adds the tasks of a scope; what they do is looked at later, when all scopes around it are known.
    fn scope(
        &mut self,
        tasks: Vec<(String, &'s TaskSpec)>,
        owner: Option<u32>,
        depth: usize,
        before: usize,
    ) -> usize {
        let number = self.graph.scopes.len();
        let start = self.graph.nodes.len() as u32;
        let nodes = start..start + tasks.len() as u32;
        if self.graph.nodes.len() + tasks.len() > self.limits.tasks_max {
            let max = self.limits.tasks_max;
            if !self.faults.iter().any(|fault| matches!(fault.kind, GraphFaultKind::TooMany("tasks", _))) {
                self.fault("/tasks", GraphFaultKind::TooMany("tasks", max));
            }
            self.graph.scopes.push(Scope { nodes: start..start, order: vec![], sinks: vec![], owner, depth });
            return number;
        }
        let names = self.names(&tasks, start);
        for (_, task) in &tasks {
            self.graph.nodes.push(unfinished(task, number));
        }
        self.connect(&tasks, start, before, &names);
        let (order, sinks) = self.sort(&nodes, &tasks);
        self.mark_tolerated(&order);
        self.graph.scopes.push(Scope { nodes, order, sinks, owner, depth });
        self.todo.push(Waiting { scope: number, tasks });
        number
    }

    fn names(&mut self, tasks: &[(String, &'s TaskSpec)], start: u32) -> Names<'s> {
        let mut names = HashMap::with_capacity(tasks.len());
        for (position, (at, task)) in tasks.iter().enumerate() {
            if let Err(why) = check_name(&task.name) {
                self.fault(format!("{at}/name"), GraphFaultKind::BadName(why));
            }
            if names.insert(&*task.name, start + position as u32).is_some() {
                self.fault(format!("{at}/name"), GraphFaultKind::Duplicate(task.name.to_string()));
            }
        }
        names
    }

    fn connect(&mut self, tasks: &[(String, &'s TaskSpec)], start: u32, before: usize, names: &Names<'s>) {
        let first_task = start + before as u32;
        // Who named a task last: so nobody has to look through those that were named before.
        let mut named_by = vec![None; tasks.len()];
        let mut is_first = |parent: u32, position: usize| {
            let last = named_by[(parent - start) as usize].replace(position);
            last != Some(position)
        };
        for (position, (at, task)) in tasks.iter().enumerate() {
            let mut parents = Vec::with_capacity(task.depends_on.len());
            for (index, name) in task.depends_on.iter().enumerate() {
                let found = names.get(&**name).copied().filter(|n| position >= before || *n < first_task);
                match found {
                    Some(parent) if is_first(parent, position) => parents.push(parent),
                    Some(_) => {}
                    None => {
                        let near = nearest(name, names.keys().copied());
                        let kind = GraphFaultKind::Unknown(name.to_string(), near);
                        self.fault(format!("{at}/depends_on/{index}"), kind);
                    }
                }
            }
            // Whatever waits for nothing but tasks that come before all others waits for all of those.
            if position >= before && parents.iter().all(|parent| *parent < first_task) {
                parents.extend((start..first_task).filter(|n| is_first(*n, position)));
            }
            self.edges += parents.len();
            self.graph.nodes[start as usize + position].parents = parents;
        }
        if self.edges > self.limits.edges_max {
            let max = self.limits.edges_max;
            self.fault("/tasks", GraphFaultKind::TooMany("dependencies", max));
            self.edges = 0;
        }
    }

    /// The nodes, each after all that it waits for, and those that nothing waits for.
    fn sort(
        &mut self,
        nodes: &std::ops::Range<u32>,
        tasks: &[(String, &'s TaskSpec)],
    ) -> (Vec<u32>, Vec<u32>) {
        let offset = |node: u32| (node - nodes.start) as usize;
        let mut children: Vec<Vec<u32>> = vec![Vec::new(); nodes.len()];
        let mut open = vec![0_usize; nodes.len()];
        for node in nodes.clone() {
            let parents = &self.graph.node(node).parents;
            open[offset(node)] = parents.len();
            parents.iter().for_each(|parent| children[offset(*parent)].push(node));
        }
        let mut order: Vec<u32> = nodes.clone().filter(|node| open[offset(*node)] == 0).collect();
        let mut next = 0;
        while let Some(node) = order.get(next).copied() {
            next += 1;
            for child in &children[offset(node)] {
                open[offset(*child)] -= 1;
                if open[offset(*child)] == 0 {
                    order.push(*child);
                }
            }
        }
        if order.len() < nodes.len() {
            let cycle = self.cycle(nodes, &open);
            let at = format!("{}/depends_on", tasks[offset(cycle[0])].0);
            let mut path: Vec<String> =
                cycle.iter().map(|node| self.graph.node(*node).name.to_string()).collect();
            path.push(path[0].clone());
            self.fault(at, GraphFaultKind::Cycle(path));
        }
        let sinks = nodes.clone().filter(|node| children[offset(*node)].is_empty()).collect();
        for (node, children) in nodes.clone().zip(children) {
            self.graph.nodes[node as usize].children = children;
        }
        (order, sinks)
    }

    /// Some tasks that wait for each other, each for the next. Whatever is left over waits for something that is left
    /// over.
    fn cycle(&self, nodes: &std::ops::Range<u32>, open: &[usize]) -> Vec<u32> {
        let is_left = |node: &u32| open[(*node - nodes.start) as usize] > 0;
        let mut walked: Vec<u32> = nodes.clone().find(is_left).into_iter().collect();
        let mut seen: HashMap<u32, usize> = walked.iter().map(|node| (*node, 0)).collect();
        loop {
            let last = *walked.last().expect("something is left over");
            let parents = &self.graph.node(last).parents;
            let next = parents.iter().copied().find(is_left).expect("it waits for something left over");
            if let Some(start) = seen.insert(next, walked.len()) {
                return walked.split_off(start);
            }
            walked.push(next);
        }
    }

    fn mark_tolerated(&mut self, order: &[u32]) {
        for node in order {
            let Node { rule, parents, .. } = self.graph.node(*node);
            let by_parents = !parents.is_empty()
                && parents.iter().all(|parent| self.graph.node(*parent).failure_tolerated);
            self.graph.nodes[*node as usize].failure_tolerated =
                *rule != TriggerRule::AllSucceeded || by_parents;
        }
    }

    /// What the tasks of a scope do.
    fn fill(&mut self, scope: usize, tasks: &[(String, &'s TaskSpec)]) {
        let start = self.graph.scopes[scope].nodes.start;
        for (position, (at, task)) in tasks.iter().enumerate() {
            let node = start + position as u32;
            let when =
                task.when.as_deref().and_then(|text| self.condition(node, &format!("{at}/when"), text));
            let work = match &task.work {
                Work::Job(job) => NodeWork::Job(self.template(
                    node,
                    &format!("{at}/job/payload"),
                    job,
                    self.iterations_of(node),
                )),
                Work::ForEach(each) => self.for_each(node, at, task, each),
            };
            let simple = task.rule == TriggerRule::AllSucceeded && when.is_none();
            let release = match &work {
                NodeWork::Job(template) if simple && !template.uses_results => Release::Task,
                NodeWork::ForEach { concurrency: Some(_), .. } => Release::Watched,
                // It does not wait for what is blocked: whenever one of its parents ends, the others may be just that.
                _ if task.rule == TriggerRule::AllDone => Release::Watched,
                _ => Release::Reconciled,
            };
            let node = &mut self.graph.nodes[node as usize];
            (node.when, node.work, node.release) = (when, work, release);
        }
    }

    fn for_each(&mut self, node: u32, at: &str, task: &'s TaskSpec, each: &'s ForEach) -> NodeWork {
        let pointer = format!("{at}/for_each");
        let over = match Path::parse(&each.over) {
            Ok(path) => {
                self.check_path(node, &pointer, &path, self.iterations_of(node));
                path
            }
            Err(error) => {
                self.fault(pointer, GraphFaultKind::BadReference(error.to_string()));
                Path::parse(INPUT).expect("a name is a path")
            }
        };
        let depth = self.iterations_of(node) + 1;
        if depth > DEPTH_MAX {
            self.fault(
                format!("{at}/for_each"),
                GraphFaultKind::TooMany("fan-outs inside of each other", DEPTH_MAX),
            );
        }
        let inner = match (&each.each, body(task)) {
            (Each::Job(job), _) => {
                NodeEach::Job(self.template(node, &format!("{at}/job/payload"), job, depth))
            }
            (Each::Tasks(_), Some(tasks)) if depth <= DEPTH_MAX => {
                if tasks.is_empty() {
                    self.fault(format!("{at}/tasks"), GraphFaultKind::NoTasks);
                }
                let tasks = located(&format!("{at}/tasks"), tasks).collect();
                NodeEach::Scope(self.scope(tasks, Some(node), depth, 0))
            }
            (Each::Tasks(_), _) => NodeEach::Scope(0),
        };
        NodeWork::ForEach { over, max_items: each.max_items, concurrency: each.concurrency, each: inner }
    }

    /// How many fan-outs it is inside of.
    fn iterations_of(&self, node: u32) -> usize {
        self.graph.scopes[self.graph.node(node).scope].depth
    }

    fn condition(&mut self, node: u32, pointer: &str, text: &str) -> Option<Condition> {
        match Condition::parse(text) {
            Ok(condition) => {
                let iterations = self.iterations_of(node);
                for path in condition.paths() {
                    self.check_path(node, pointer, path, iterations);
                }
                Some(condition)
            }
            Err(error) => {
                self.fault(pointer, GraphFaultKind::BadReference(error.to_string()));
                None
            }
        }
    }

    fn template(&mut self, node: u32, pointer: &str, job: &JobTemplate, iterations: usize) -> Template {
        let payload: Value = serde_json::from_str(job.payload.as_str()).unwrap_or_default();
        let paths = match references(&payload) {
            Ok(paths) => paths,
            Err(why) => {
                self.fault(pointer, GraphFaultKind::BadReference(why));
                None
            }
        };
        for path in paths.iter().flatten() {
            self.check_path(node, pointer, path, iterations);
        }
        let uses_results = paths.iter().flatten().any(|path| !RESERVED.contains(&path.root.as_str()));
        Template { job: job.clone(), payload: paths.map(|_| payload), uses_results }
    }

    fn check_path(&mut self, node: u32, pointer: &str, path: &Path, iterations: usize) {
        let bad = match path.root.as_str() {
            INPUT | RUN => return,
            ITEM | INDEX if iterations > 0 => return,
            ITEM | INDEX => format!("{path} has a meaning only inside of for_each"),
            OUTER if iterations > 1 => return,
            OUTER => format!("{path} has a meaning only inside of a for_each that is inside of another"),
            name => match (self.graph.source(node, name), path.first_field()) {
                (Some(_), Some(aspect)) if ASPECTS.contains(&aspect) => return,
                (Some(_), _) => format!("{path}: say {name}.result, {name}.status or {name}.error"),
                (None, _) if self.is_adjacent(node, name) => {
                    format!("{path}: it does not depend on {name:?}; add it to depends_on")
                }
                (None, _) => format!("{path}: there is no task named {name:?}"),
            },
        };
        self.fault(pointer, GraphFaultKind::BadReference(bad));
    }

    fn is_adjacent(&self, node: u32, name: &str) -> bool {
        let scope = &self.graph.scopes[self.graph.node(node).scope];
        scope.nodes.clone().any(|other| &*self.graph.node(other).name == name)
    }
}

fn unfinished(task: &TaskSpec, scope: usize) -> Node {
    Node {
        name: task.name.clone(),
        scope,
        parents: Vec::new(),
        children: Vec::new(),
        rule: task.rule,
        when: None,
        work: NodeWork::ForEach {
            over: Path::parse(INPUT).expect("a name is a path"),
            max_items: 0,
            concurrency: None,
            each: NodeEach::Scope(0),
        },
        failure_tolerated: false,
        release: Release::Reconciled,
    }
}

fn check_name(name: &str) -> Result<(), String> {
    let begins_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if !begins_well || !name.chars().all(is_name_char) {
        return Err(format!("{name:?} cannot be a name: letters, digits, _ and -, beginning with a letter"));
    }
    if name.len() > NAME_LEN_MAX {
        return Err(format!("a name has at most {NAME_LEN_MAX} characters"));
    }
    if RESERVED.contains(&name) {
        return Err(format!("{name:?} has a meaning of its own and cannot be the name of a task"));
    }
    Ok(())
}

/// The name that is most like one that does not exist. Only in small graphs: this is a kindness, not worth walking
/// thousands of names for each.
fn nearest<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> Option<String> {
    const LOOKED_AT_MAX: usize = 200;
    names
        .take(LOOKED_AT_MAX)
        .map(|known| (strsim::osa_distance(name, known), known))
        .filter(|(distance, _)| *distance <= 2)
        .min()
        .map(|(_, known)| known.to_owned())
}
