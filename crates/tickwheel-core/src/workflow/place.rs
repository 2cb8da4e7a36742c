//! Where a job stands in a run: which task it carries out, in which round of which fan-out.
//!
//! A run numbers its jobs from 1. The tasks of a scope (the whole graph, or the body of one round of a fan-out) have numbers that follow each
//! other, in the order of the definition: so whoever knows a place knows its neighbours' jobs without asking anybody. Who waits for whom is
//! settled when a job is made, and part of its place: nobody has to look it up when the job ends.

use serde::{Deserialize, Serialize};

use super::ranges;
use crate::id::{JobId, RunId};
use crate::job::JsonText;
use crate::parents::Release;
use crate::payload::Payload;

/// The number of the first task of a run.
pub const FIRST_INDEX: u32 = 1;

/// What a job is to its task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// All of it.
    #[default]
    Whole,
    /// One of those that its fan-out made: that of the innermost round.
    Item,
}

/// One round of a fan-out, from the point of view of what runs in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Round {
    /// Which element of the array.
    pub item: u32,
    /// The number of the first job of the round's body. Zero where the round is a single job.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub first: u32,
    /// The element, kept where it is still needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub element: Option<JsonText>,
}

/// A job's place in a run. The first two are part of the job's id, and not written down once more ([`Place::filled_in`]).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The run.
    #[serde(skip, default = "nowhere")]
    pub run: RunId,
    /// Its number in the run.
    #[serde(skip)]
    pub index: u32,
    /// Which node of the graph it carries out.
    pub node: u32,
    /// All of the node, or an item of it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub part: Part,
    /// Who lets it go.
    #[serde(default = "by_counts", skip_serializing_if = "is_by_counts")]
    pub release: Release,
    /// The rounds it is in, the outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rounds: Vec<Round>,
    /// The numbers of the jobs that it waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "ranges")]
    pub parents: Vec<u32>,
    /// The numbers of the jobs that wait for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "ranges")]
    pub children: Vec<u32>,
    /// The number of the job that stands for it and for others, and waits for all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<u32>,
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

impl Place {
    /// The place in a [spec](crate::job::JobSpec) that was written down, of which nothing else is read.
    pub fn of_spec(text: &str) -> serde_json::Result<Option<Self>> {
        #[derive(Deserialize)]
        struct OfSpec {
            place: Option<Place>,
        }
        serde_json::from_str(text).map(|spec: OfSpec| spec.place)
    }

    /// The place of the job with this id, which was read.
    #[must_use]
    pub fn filled_in(self, id: JobId) -> Self {
        Self { run: RunId::of_task(id), index: id.task_index(), ..self }
    }

    /// The job that has this place.
    pub fn job_id(&self) -> JobId {
        JobId::of_task(self.run, self.index)
    }

    /// The jobs that wait for it by name.
    pub fn child_ids(&self) -> impl Iterator<Item = JobId> {
        self.children.iter().map(|index| JobId::of_task(self.run, *index))
    }

    /// The job that stands for it.
    pub fn group_id(&self) -> Option<JobId> {
        self.group.map(|index| JobId::of_task(self.run, index))
    }
}

/// The jobs that another one stands for, and how many of them may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FanOut {
    /// The number of the first.
    pub first: u32,
    /// How many there are.
    pub items: u32,
    /// How many of them were let go so far, the first ones first.
    pub released: u32,
    /// How many are still to be made, the last ones last: a step makes only so many.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unmade: u32,
}

impl FanOut {
    /// What a job says of its parts in the place of its payload; `None` as long as it has none.
    pub fn read(payload: &Payload) -> Option<Self> {
        serde_json::from_str(payload.as_str()).ok()
    }

    /// The same, written.
    pub fn to_payload(self) -> Payload {
        Payload::from_stored(serde_json::to_string(&self).expect("numbers"))
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
    fn a_place_with_a_field_that_is_no_longer_kept_is_read() {
        let text = r#"{"place":{"node":2,"children":[[4,6]],"counted":true}}"#;
        let place = Place::of_spec(text).expect("it is read").expect("there is one");
        assert_eq!((place.node, place.children), (2, vec![4, 5, 6]));
    }
}
