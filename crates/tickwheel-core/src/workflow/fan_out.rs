//! Fan-outs: a job for each element of an array, made in steps, and the join of their results.
//!
//! ```text
//!   array ──measured──▶ all its data is within the bounds? ──no──▶ the task fails, nothing is made
//!                               │ yes
//!                               ▼
//!            some elements ──▶ some more ──▶ … ──▶ all made ──▶ those held back, one by one ──▶ join
//! ```
//! Each arrow is a step of its own; in between other runs have their turn. The numbers of all parts are taken with the first step.

use std::borrow::Cow;

use serde_json::Value;

use super::begin::{NewJobs, StartRefused, hold};
use super::budget::{DATA_LEN_MAX, Making, data_len};
use super::data::{DataFault, Found, Lookup, Pattern, measure};
use super::graph::{NodeEach, NodeWork, Template};
use super::path::{INDEX, ITEM, Path, kind};
use super::place::{FanOut, Part, Place, Round};
use super::prepare::{Preparation, Prepared, TOO_LARGE, TOO_MANY_ITEMS, UNRESOLVED, failure};
use super::run::{Look, TaskChange};
use crate::attempt::Failure;
use crate::id::{JobId, RunId};
use crate::job::{Job, JsonText};
use crate::parents::Release;
use crate::state::State;

/// The array that a path leads to.
pub(super) fn elements<'v>(over: &Path, max: u32, found: Found<'v>) -> Result<Cow<'v, [Value]>, DataFault> {
    let no_array = |why: &str| DataFault::NoArray(format!("for_each over {over}: {why}"));
    let elements = match found.map_err(|why| no_array(&why))? {
        Cow::Borrowed(Value::Array(elements)) => Cow::Borrowed(elements.as_slice()),
        Cow::Owned(Value::Array(elements)) => Cow::Owned(elements),
        other => return Err(no_array(&format!("that is {} and no array", kind(&other)))),
    };
    if elements.len() > max as usize {
        let what = format!("for_each over {over}: {} elements, of which {max} are allowed", elements.len());
        return Err(DataFault::TooManyItems(what));
    }
    Ok(elements)
}

/// What is done for each element, and with what.
struct Items<'p, 'r> {
    preparation: &'p Preparation<'r>,
    elements: &'p [Value],
    each: Work<'p>,
    /// The first so many are let go at once.
    concurrency: u32,
}

enum Work<'p> {
    /// A job, with the same payload for all, or one of its own.
    Job(&'p Template, Option<Pattern<'p>>),
    /// Tasks, which come when it is their turn.
    Tasks,
}

impl<'p, 'r> Items<'p, 'r> {
    /// What differs from element to element.
    fn look(&self, item: usize, path: &Path) -> Found<'p> {
        if path.root == INDEX {
            return path.walk(&Value::from(item)).cloned().map(Cow::Owned);
        }
        path.walk(&self.elements[item]).map(Cow::Borrowed)
    }

    /// How much data an element's job is stored with.
    fn data_len(&self, item: usize) -> Result<usize, DataFault> {
        match &self.each {
            Work::Job(template, None) => Ok(template.job.payload.as_str().len()),
            Work::Job(_, Some(pattern)) => pattern.own_len(&|path| self.look(item, path)),
            Work::Tasks => {
                let around =
                    self.preparation.task.place.rounds.iter().filter_map(|round| round.element.as_ref());
                let own = measure(&self.elements[item], DATA_LEN_MAX);
                let own =
                    own.ok_or_else(|| DataFault::TooLarge(format!("it has over {DATA_LEN_MAX} bytes")))?;
                Ok(own + around.map(|element| element.as_str().len()).sum::<usize>())
            }
        }
    }

    /// The data of all elements is counted before any of it is made.
    fn charge(&self, making: &mut Making) -> Result<(), Failure> {
        for item in 0..self.elements.len() {
            let charged = self.data_len(item).and_then(|len| making.charge(len));
            charged.map_err(|fault| at_item(failure(&fault), item))?;
        }
        Ok(())
    }

    /// The job of an element.
    fn job(&self, item: u32, parts: FanOut) -> Result<Job, DataFault> {
        let Preparation { material, task, node } = self.preparation;
        let held = item >= self.concurrency;
        let place = |rounds, release| Place {
            index: parts.first + item,
            part: Part::Item,
            release,
            rounds,
            parents: Vec::new(),
            children: Vec::new(),
            group: Some(task.place.index),
            ..task.place
        };
        let mut rounds = task.place.rounds.clone();
        match &self.each {
            Work::Job(template, pattern) => {
                let payload = match pattern {
                    Some(pattern) => pattern.payload(&|path| self.look(item as usize, path))?,
                    None => template.job.payload.clone().into(),
                };
                // The element is in the payload: nobody needs it again.
                rounds.iter_mut().for_each(|round| round.element = None);
                rounds.push(Round { item, first: 0, element: None });
                let release = if held { Release::Conducted } else { Release::Task };
                let mut job = material.maker.job(template, place(rounds, release), payload);
                if held {
                    hold(&mut job, 1);
                }
                Ok(job)
            }
            Work::Tasks => {
                let element = Some(JsonText::from_checked(self.elements[item as usize].to_string()));
                rounds.push(Round { item, first: 0, element });
                let mut job = material.maker.parts(&node.name, place(rounds, Release::Conducted));
                hold(&mut job, u32::from(held));
                Ok(job)
            }
        }
    }

    /// Makes as many of the parts as a step has room for, and at least one.
    fn make_some(
        &self,
        mut parts: FanOut,
        making: &mut Making,
        new: &mut NewJobs,
    ) -> Result<FanOut, Failure> {
        while parts.unmade > 0 {
            let item = parts.items - parts.unmade;
            let job = self.job(item, parts).map_err(|fault| at_item(failure(&fault), item as usize))?;
            making.made(1, data_len(&job));
            parts.unmade -= 1;
            if item < self.concurrency {
                parts.released += 1;
                new.looks.extend(matches!(self.each, Work::Tasks).then_some(job.id));
            }
            new.jobs.push(job);
            if making.is_full() {
                break;
            }
        }
        Ok(parts)
    }
}

impl<'r> Preparation<'r> {
    /// The first parts of a fan-out.
    pub(super) fn fan_out(&self, making: &mut Making) -> Result<Prepared, Failure> {
        let elements = self.elements()?;
        if elements.is_empty() {
            return self.completed("[]".to_owned(), making);
        }
        let items = self.items(&elements)?;
        items.charge(making)?;
        let count = elements.len() as u32;
        let parts = FanOut { first: making.next_index, items: count, released: 0, unmade: count };
        self.take_numbers(parts, making)?;
        self.make(&items, parts, true, making)
    }

    fn make(
        &self,
        items: &Items<'_, 'r>,
        parts: FanOut,
        fresh: bool,
        making: &mut Making,
    ) -> Result<Prepared, Failure> {
        let mut new = NewJobs::default();
        let fan_out = items.make_some(parts, making, &mut new)?;
        // While parts are made nobody lets those go that are held back: that is seen to afterwards.
        if fan_out.unmade > 0 || !fresh {
            new.looks.push(self.task.job_id);
        }
        Ok(Prepared { changes: vec![(self.task.job_id, TaskChange::Expand { fan_out, fresh })], new })
    }

    fn elements(&self) -> Result<Cow<'r, [Value]>, Failure> {
        let NodeWork::ForEach { over, max_items, .. } = &self.node.work else { return Ok(Cow::default()) };
        elements(over, *max_items, self.look(over)).map_err(|fault| failure(&fault))
    }

    fn items<'p>(&'p self, elements: &'p [Value]) -> Result<Items<'p, 'r>, Failure> {
        let NodeWork::ForEach { concurrency, each, .. } = &self.node.work else {
            unreachable!("only what is done for each element has parts")
        };
        let each = match each {
            NodeEach::Scope(_) => Work::Tasks,
            NodeEach::Job(template) => Work::Job(template, self.pattern(template)?),
        };
        Ok(Items { preparation: self, elements, each, concurrency: concurrency.unwrap_or(u32::MAX) })
    }

    fn pattern<'p>(&'p self, template: &'p Template) -> Result<Option<Pattern<'p>>, Failure> {
        let Some(payload) = &template.payload else { return Ok(None) };
        let varies = |path: &Path| path.root == ITEM || path.root == INDEX;
        // As an element sees it: what is around it is the element of the fan-out that it is inside of.
        let mut rounds = self.task.place.rounds.clone();
        rounds.push(Round { item: 0, first: 0, element: None });
        let look = |path: &Path| self.look_from(path, &rounds);
        let lookup = Lookup { varies: &varies, look: &look, kept: &|path| self.kept(path) };
        let pattern = Pattern::read(payload, &lookup, DATA_LEN_MAX);
        pattern.map(Some).map_err(|fault| at_item(failure(&fault), 0))
    }

    fn take_numbers(&self, parts: FanOut, making: &mut Making) -> Result<(), Failure> {
        if parts.indices().end > RunId::TASK_INDEX_MAX {
            return Err(Failure::new(TOO_MANY_ITEMS, "the run has as many tasks as a run can have"));
        }
        making.next_index += parts.items;
        Ok(())
    }

    /// The tasks of one element.
    pub(super) fn open_body(&self, making: &mut Making) -> Result<Prepared, Failure> {
        let NodeWork::ForEach { each: NodeEach::Scope(scope), .. } = &self.node.work else {
            // A job of a fan-out that was held back: it has its data.
            return Ok(Prepared::only(self.task.job_id, TaskChange::Release { payload: None }));
        };
        let first = making.next_index;
        let mut rounds = self.task.place.rounds.clone();
        rounds.last_mut().expect("an item is in a round").first = first;
        let items = self.material.graph.scopes[*scope].nodes.len() as u32;
        let parts = FanOut { first, items, released: items, unmade: 0 };
        self.take_numbers(parts, making)?;
        let group = Some(self.task.place.index);
        let of_refused =
            |refused: StartRefused| Failure { message: refused.to_string(), ..failure(&refused.why) };
        let new = self.material.maker.scope(*scope, first, group, &rounds, making).map_err(of_refused)?;
        making.made(items, new.jobs.iter().map(data_len).sum());
        let expand = TaskChange::Expand { fan_out: parts, fresh: true };
        Ok(Prepared { changes: vec![(self.task.job_id, expand)], new })
    }

    /// More of the parts are made or may go, or all are done.
    pub(super) fn go_on(&self, parts: FanOut, making: &mut Making) -> Result<Prepared, Failure> {
        let id = |index| JobId::of_task(self.task.place.run, index);
        if parts.unmade > 0 {
            let elements = self.elements()?;
            if elements.len() != parts.items as usize {
                // Nobody changes what has ended; but nobody is to be surprised either.
                return Err(Failure::new(UNRESOLVED, "the array has another length than at first"));
            }
            return self.make(&self.items(&elements)?, parts, false, making);
        }
        if self.task.parents.open == 0 {
            let data = |index| self.material.job(id(index));
            let fine =
                |index| data(index).is_some_and(|d| matches!(d.state, State::Completed | State::Skipped));
            if !parts.indices().all(fine) {
                return Ok(Prepared::default());
            }
            return self.join(parts, making);
        }
        let NodeWork::ForEach { concurrency: Some(concurrency), each, .. } = &self.node.work else {
            return Ok(Prepared::default());
        };
        let not_ended = (parts.released + self.task.parents.open).saturating_sub(parts.items);
        let under_way = if self.material.parts_are_idle { 0 } else { not_ended };
        let released = parts.items.min(parts.released + concurrency.saturating_sub(under_way));
        if self.task.place.part == Part::Item || parts.released == parts.items {
            return Ok(Prepared::default());
        }
        if released == parts.released {
            // Whether those under way are blocked, and the next may go after all, is seen only from the whole.
            let looks = vec![Look::place_of(self.task.place.run)];
            return Ok(Prepared { new: NewJobs { looks, ..NewJobs::default() }, ..Prepared::default() });
        }
        let next = (parts.first + parts.released)..(parts.first + released);
        let fan_out = FanOut { released, ..parts };
        let mut prepared = Prepared::only(self.task.job_id, TaskChange::Expand { fan_out, fresh: false });
        match each {
            NodeEach::Job(_) => {
                prepared.changes.extend(next.map(|index| (id(index), TaskChange::Release { payload: None })));
            }
            NodeEach::Scope(_) => prepared.new.looks.extend(next.map(id)),
        }
        Ok(prepared)
    }

    /// The results of the parts: of the items in their order, of an element's tasks those of the ones that nothing waits for.
    fn join(&self, parts: FanOut, making: &mut Making) -> Result<Prepared, Failure> {
        let result = |index| {
            let job = self.material.job(JobId::of_task(self.task.place.run, index));
            job.and_then(|job| job.result.as_ref()).map_or("null", JsonText::as_str)
        };
        let mut joined = Joined::default();
        match &self.node.work {
            NodeWork::ForEach { each: NodeEach::Scope(scope), .. } if self.task.place.part == Part::Item => {
                let scope = &self.material.graph.scopes[*scope];
                let of_node = |node: u32| result(parts.first + (node - scope.nodes.start));
                match scope.sinks.as_slice() {
                    [one] => joined.add("", of_node(*one))?,
                    several => {
                        for (n, node) in several.iter().enumerate() {
                            let name = Value::from(&*self.material.graph.node(*node).name);
                            joined
                                .add(&format!("{}{name}:", if n == 0 { "{" } else { "," }), of_node(*node))?;
                        }
                        joined.add("}", "")?;
                    }
                }
            }
            _ => {
                for index in parts.indices() {
                    joined.add(if index == parts.first { "[" } else { "," }, result(index))?;
                }
                joined.add("]", "")?;
            }
        }
        self.completed(joined.0, making)
    }

    fn completed(&self, result: String, making: &mut Making) -> Result<Prepared, Failure> {
        making.charge(result.len()).map_err(|fault| failure(&fault))?;
        making.made(0, result.len());
        let result = Some(JsonText::from_checked(result));
        Ok(Prepared::only(self.task.job_id, TaskChange::End { state: State::Completed, result, error: None }))
    }
}

/// A result that is put together from others.
#[derive(Default)]
struct Joined(String);

impl Joined {
    fn add(&mut self, between: &str, result: &str) -> Result<(), Failure> {
        if self.0.len() + between.len() + result.len() > DATA_LEN_MAX {
            let message =
                format!("the result of all its parts would be over {DATA_LEN_MAX} bytes, which are allowed");
            return Err(Failure::new(TOO_LARGE, message));
        }
        self.0.push_str(between);
        self.0.push_str(result);
        Ok(())
    }
}

fn at_item(failure: Failure, item: usize) -> Failure {
    Failure { message: format!("item {item}: {}", failure.message), ..failure }
}
