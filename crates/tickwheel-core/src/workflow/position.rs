//! The position of a job in a run: which task it carries out, in which iteration of which fan-out.
//!
//! A run numbers its jobs from 1. The tasks of a scope (the whole graph, or the body of one iteration of a fan-out)
//! have numbers that follow each other, in the order of the definition: so whoever knows a position knows the jobs of
//! the adjacent tasks without asking anybody. Who waits for whom is settled when a job is made, and part of its
//! position: nobody has to look it up when the job ends.

use serde::{Deserialize, Serialize};

use super::ranges;
use crate::id::{JobId, RunId};
use crate::job::JsonText;
use crate::parents::Release;

/// The number of the first task of a run.
pub const FIRST_INDEX: u32 = 1;

/// What a job is to its task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskRole {
    /// All of it.
    #[default]
    Whole,
    /// One of those that its fan-out made: that of the innermost iteration.
    Item,
}

/// One iteration of a fan-out, from the point of view of what runs in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Iteration {
    /// Which element of the array.
    pub item: u32,
    /// The number of the first job of the iteration's body. Zero where the iteration is a single job.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub first: u32,
    /// The element, kept where it is still needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub element: Option<JsonText>,
}

/// A job's position in a run. The first two are part of the job's id, and not written down once more
/// ([`TaskPosition::filled_in`]).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskPosition {
    /// The run.
    #[serde(skip, default = "nowhere")]
    pub run: RunId,
    /// Its number in the run.
    #[serde(skip)]
    pub index: u32,
    /// Which node of the graph it carries out.
    pub node: u32,
    /// All of the node, or an item of it.
    #[serde(rename = "part", default, skip_serializing_if = "is_default")]
    pub role: TaskRole,
    /// Who releases it.
    #[serde(default = "by_counts", skip_serializing_if = "is_by_counts")]
    pub release: Release,
    /// The iterations it is in, the outermost first.
    #[serde(rename = "rounds", default, skip_serializing_if = "Vec::is_empty")]
    pub iterations: Vec<Iteration>,
    /// The numbers of the jobs that it waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "ranges")]
    pub parents: Vec<u32>,
    /// The numbers of the jobs that wait for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "ranges")]
    pub children: Vec<u32>,
    /// The number of the fan-out task of which it is an item, and which waits for all of them.
    #[serde(rename = "group", default, skip_serializing_if = "Option::is_none")]
    pub fan_out_task: Option<u32>,
}

const fn nowhere() -> RunId {
    RunId::from_uuid(uuid::Uuid::nil())
}

const fn by_counts() -> Release {
    Release::Task
}

fn is_by_counts(release: &Release) -> bool {
    *release == by_counts()
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl TaskPosition {
    /// The position in a [spec](crate::job::JobSpec) that was written down, of which nothing else is read.
    pub fn of_spec(text: &str) -> serde_json::Result<Option<Self>> {
        #[derive(Deserialize)]
        struct OfSpec {
            #[serde(rename = "place")]
            position: Option<TaskPosition>,
        }
        serde_json::from_str(text).map(|spec: OfSpec| spec.position)
    }

    /// The position of the job with this id, which was read.
    #[must_use]
    pub fn filled_in(self, id: JobId) -> Self {
        Self { run: RunId::of_task(id), index: id.task_index(), ..self }
    }

    /// The job that has this position.
    pub fn job_id(&self) -> JobId {
        JobId::of_task(self.run, self.index)
    }

    /// The jobs that wait for it by name.
    pub fn child_ids(&self) -> impl Iterator<Item = JobId> {
        self.children.iter().map(|index| JobId::of_task(self.run, *index))
    }

    /// The fan-out task of which it is an item.
    pub fn fan_out_task_id(&self) -> Option<JobId> {
        self.fan_out_task.map(|index| JobId::of_task(self.run, index))
    }
}

/// The items of a fan-out, and how many of them may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FanOut {
    /// The number of the first.
    pub first: u32,
    /// How many there are.
    pub items: u32,
    /// How many of them were released so far, the first ones first.
    pub released: u32,
    /// How many are still to be made, the last ones last: a step makes only so many.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unmade: u32,
}

impl FanOut {
    /// As it is stored.
    pub fn to_text(self) -> String {
        serde_json::to_string(&self).expect("numbers")
    }

    /// What is stored.
    pub fn from_text(text: &str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }

    /// The numbers of its jobs.
    pub const fn indices(self) -> std::ops::Range<u32> {
        self.first..self.first + self.items
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_with_a_field_that_is_no_longer_kept_is_read() {
        let text = r#"{"place":{"node":2,"children":[[4,6]],"counted":true}}"#;
        let position = TaskPosition::of_spec(text).expect("it is read").expect("there is one");
        assert_eq!((position.node, position.children), (2, vec![4, 5, 6]));
    }
}
