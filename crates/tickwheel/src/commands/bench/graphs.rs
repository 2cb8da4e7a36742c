//! The graphs whose runs are measured.

use std::fmt;
use std::sync::Arc;

use anyhow::{bail, ensure};
use clap::ValueEnum;
use serde::Serialize;
use tickwheel_core::JsonText;
use tickwheel_core::schedule::JobTemplate;
use tickwheel_core::workflow::{OnFailure, TaskSpec, TriggerRule, Work, WorkflowSpec};

use super::jobs::{WITH_RESULT, template};

const LAYERS: usize = 10;
/// So many tasks of the layer before each task waits for.
const PARENTS: usize = 10;

/// How the tasks of a graph wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// One task, then all others but one, then that one
    Wide,
    /// One after the other
    Deep,
    /// Ten layers; each task waits for ten of the layer before
    Layered,
    /// The same, and each task is given the result of one of those
    Data,
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Wide => "wide",
            Self::Deep => "deep",
            Self::Layered => "layered",
            Self::Data => "layered, with data",
        })
    }
}

impl Shape {
    /// A workflow of this shape.
    pub fn workflow(self, tasks: usize) -> anyhow::Result<WorkflowSpec> {
        match self {
            Self::Wide => ensure!(tasks >= 3, "a wide graph has at least 3 tasks"),
            Self::Deep => ensure!(tasks >= 1, "a graph has at least one task"),
            Self::Layered | Self::Data => {
                let width_min = LAYERS * PARENTS;
                if tasks < width_min || !tasks.is_multiple_of(LAYERS) {
                    bail!("a layered graph has {width_min} tasks or more, a multiple of {LAYERS}");
                }
            }
        }
        let tasks = (0..tasks).map(|number| self.task(number, tasks)).collect();
        Ok(WorkflowSpec { tasks, on_failure: OnFailure::FailFast, ..WorkflowSpec::default() })
    }

    fn task(self, number: usize, tasks: usize) -> TaskSpec {
        let depends_on: Vec<Arc<str>> = self.parents(number, tasks).into_iter().map(name).collect();
        let job = match (self, depends_on.first()) {
            (Self::Data, Some(parent)) => given_the_result_of(parent),
            (Self::Data, None) => JobTemplate { job_type: WITH_RESULT.into(), ..template() },
            _ => template(),
        };
        let rule = TriggerRule::AllSucceeded;
        TaskSpec { name: name(number), depends_on, rule, when: None, work: Work::Job(job) }
    }

    fn parents(self, number: usize, tasks: usize) -> Vec<usize> {
        let (first, last) = (0, tasks - 1);
        match self {
            Self::Wide if number == first => Vec::new(),
            Self::Wide if number == last => (first + 1..last).collect(),
            Self::Wide => vec![first],
            Self::Deep => number.checked_sub(1).into_iter().collect(),
            Self::Layered | Self::Data => {
                let width = tasks / LAYERS;
                let Some(layer_before) = (number / width).checked_sub(1) else { return Vec::new() };
                // Neighbours: so no part of the graph goes on by itself.
                (0..PARENTS).map(|step| layer_before * width + (number + step) % width).collect()
            }
        }
    }
}

fn name(number: usize) -> Arc<str> {
    format!("t{number}").into()
}

fn given_the_result_of(parent: &str) -> JobTemplate {
    let payload = format!(
        r#"{{"to":"somebody@example.org","template":"welcome","data":{{"$from":"{parent}.result"}}}}"#
    );
    JobTemplate { job_type: WITH_RESULT.into(), payload: JsonText::from_checked(payload), ..template() }
}

#[cfg(test)]
mod tests {
    use tickwheel_core::parents::Release;
    use tickwheel_core::workflow::{Graph, GraphLimits};

    use super::*;

    fn graph(shape: Shape, tasks: usize) -> Graph {
        let spec = shape.workflow(tasks).unwrap();
        Graph::checked(&spec, GraphLimits::default()).unwrap()
    }

    #[test]
    fn a_wide_graph_opens_and_closes_with_one_task() {
        let graph = graph(Shape::Wide, 1_000);
        let parents = |number: u32| graph.node(number).parents.len();
        assert_eq!((parents(0), parents(1), parents(998), parents(999)), (0, 1, 1, 998));
    }

    #[test]
    fn a_deep_graph_is_a_chain() {
        let graph = graph(Shape::Deep, 1_000);
        assert!(graph.nodes.iter().enumerate().skip(1).all(|(n, node)| node.parents == [n as u32 - 1]));
    }

    #[test]
    fn in_a_layered_graph_each_task_waits_for_ten_of_the_layer_before() {
        let graph = graph(Shape::Layered, 10_000);
        for (number, node) in graph.nodes.iter().enumerate() {
            let layer_before = (number / 1_000).checked_sub(1);
            assert_eq!(node.parents.len(), if layer_before.is_some() { PARENTS } else { 0 });
            assert!(node.parents.iter().all(|parent| Some(*parent as usize / 1_000) == layer_before));
        }
    }

    #[test]
    fn a_task_that_is_given_data_takes_the_reconciler_and_others_do_not() {
        let release = |shape| graph(shape, 100).nodes[99].release;
        assert_eq!(release(Shape::Data), Release::Reconciled);
        assert_eq!(release(Shape::Layered), Release::Task);
    }

    #[test]
    fn too_few_tasks_are_refused() {
        assert!(Shape::Wide.workflow(2).is_err());
        assert!(Shape::Layered.workflow(90).is_err() && Shape::Layered.workflow(1_005).is_err());
    }
}
