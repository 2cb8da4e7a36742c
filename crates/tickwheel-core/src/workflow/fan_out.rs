//! Fan-outs: a job for each element of an array, made in steps, and the join of their results.
//!
//! ```text
//!   array ──measured──▶ all its data is within the bounds? ──no──▶ the task fails, nothing is made
//!                               │ yes
//!                               ▼
//!            some elements ──▶ some more ──▶ … ──▶ all made ──▶ those held back, one by one ──▶ join
//! ```
//! Each arrow is a step of its own; in between other runs have their turn. The numbers of all items are taken with the
//! first step.

use std::borrow::Cow;

use serde_json::Value;

use super::begin::{NewJobs, StartRefused, hold};
use super::budget::{DATA_LEN_MAX, StepBudget, data_len};
use super::data::{DataFault, Found, Lookup, Pattern, measure};
use super::graph::{NodeEach, NodeWork, Template};
use super::path::{INDEX, ITEM, Path, kind};
use super::position::{FanOut, Iteration, TaskPosition, TaskRole};
use super::prepare::{Preparation, Prepared, TOO_LARGE, TOO_MANY_ITEMS, UNRESOLVED, failure};
use super::run::{ReconcileRequest, TaskChange};
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
    each: ItemWork<'p>,
    /// The first so many are released at once.
    concurrency: u32,
}

enum ItemWork<'p> {
    /// A job, with the same payload for all, or one of its own.
    Job(&'p Template, Option<Pattern<'p>>),
    /// Tasks, which come when it is their turn.
    Tasks,
}

impl<'p, 'r> Items<'p, 'r> {
    /// What differs from element to element.
    fn resolve(&self, item: usize, path: &Path) -> Found<'p> {
        if path.root == INDEX {
            return path.walk(&Value::from(item)).cloned().map(Cow::Owned);
        }
        path.walk(&self.elements[item]).map(Cow::Borrowed)
    }

    /// How much data an element's job is stored with.
    fn data_len(&self, item: usize) -> Result<usize, DataFault> {
        match &self.each {
            ItemWork::Job(template, None) => Ok(template.job.payload.as_str().len()),
            ItemWork::Job(_, Some(pattern)) => pattern.own_len(&|path| self.resolve(item, path)),
            ItemWork::Tasks => {
                let outer = self
                    .preparation
                    .task
                    .position
                    .iterations
                    .iter()
                    .filter_map(|iteration| iteration.element.as_ref());
                let own = measure(&self.elements[item], DATA_LEN_MAX);
                let own =
                    own.ok_or_else(|| DataFault::TooLarge(format!("it has over {DATA_LEN_MAX} bytes")))?;
                Ok(own + outer.map(|element| element.as_str().len()).sum::<usize>())
            }
        }
    }

    /// The data of all elements is counted before any of it is made.
    fn charge(&self, budget: &mut StepBudget) -> Result<(), Failure> {
        for item in 0..self.elements.len() {
            let charged = self.data_len(item).and_then(|len| budget.charge(len));
            charged.map_err(|fault| at_item(failure(&fault), item))?;
        }
        Ok(())
    }

    /// The job of an element.
    fn job(&self, item: u32, fan_out: FanOut) -> Result<Job, DataFault> {
        let Preparation { material, task, node } = self.preparation;
        let held = item >= self.concurrency;
        let position = |iterations, release| TaskPosition {
            index: fan_out.first + item,
            role: TaskRole::Item,
            release,
            iterations,
            parents: Vec::new(),
            children: Vec::new(),
            fan_out_task: Some(task.position.index),
            ..task.position
        };
        let mut iterations = task.position.iterations.clone();
        match &self.each {
            ItemWork::Job(template, pattern) => {
                let payload = match pattern {
                    Some(pattern) => pattern.payload(&|path| self.resolve(item as usize, path))?,
                    None => template.job.payload.clone().into(),
                };
                // The element is in the payload: nobody needs it again.
                iterations.iter_mut().for_each(|iteration| iteration.element = None);
                iterations.push(Iteration { item, first: 0, element: None });
                let release = if held { Release::Reconciled } else { Release::Task };
                let mut job = material.maker.job(template, position(iterations, release), payload);
                if held {
                    hold(&mut job, 1);
                }
                Ok(job)
            }
            ItemWork::Tasks => {
                let element = Some(JsonText::from_checked(self.elements[item as usize].to_string()));
                iterations.push(Iteration { item, first: 0, element });
                let mut job =
                    material.maker.fan_out_job(&node.name, position(iterations, Release::Reconciled));
                hold(&mut job, u32::from(held));
                Ok(job)
            }
        }
    }

    /// Makes as many of the items as a step has room for, and at least one.
    fn make_some(
        &self,
        mut fan_out: FanOut,
        budget: &mut StepBudget,
        new: &mut NewJobs,
    ) -> Result<FanOut, Failure> {
        while fan_out.unmade > 0 {
            let item = fan_out.items - fan_out.unmade;
            let job = self.job(item, fan_out).map_err(|fault| at_item(failure(&fault), item as usize))?;
            budget.made(1, data_len(&job));
            fan_out.unmade -= 1;
            if item < self.concurrency {
                fan_out.released += 1;
                new.reconcile_requests.extend(matches!(self.each, ItemWork::Tasks).then_some(job.id));
            }
            new.jobs.push(job);
            if budget.is_full() {
                break;
            }
        }
        Ok(fan_out)
    }
}

impl<'r> Preparation<'r> {
    /// The first items of a fan-out.
    pub(super) fn fan_out(&self, budget: &mut StepBudget) -> Result<Prepared, Failure> {
        let elements = self.elements()?;
        if elements.is_empty() {
            return self.completed("[]".to_owned(), budget);
        }
        let items = self.items(&elements)?;
        items.charge(budget)?;
        let count = elements.len() as u32;
        let fan_out = FanOut { first: budget.next_index, items: count, released: 0, unmade: count };
        self.take_numbers(fan_out, budget)?;
        self.make(&items, fan_out, true, budget)
    }

    fn make(
        &self,
        items: &Items<'_, 'r>,
        fan_out: FanOut,
        fresh: bool,
        budget: &mut StepBudget,
    ) -> Result<Prepared, Failure> {
        let mut new = NewJobs::default();
        let fan_out = items.make_some(fan_out, budget, &mut new)?;
        // While items are made nobody releases those that are held back: that is seen to afterwards.
        if fan_out.unmade > 0 || !fresh {
            new.reconcile_requests.push(self.task.job_id);
        }
        Ok(Prepared { changes: vec![(self.task.job_id, TaskChange::Expand { fan_out, fresh })], new })
    }

    fn elements(&self) -> Result<Cow<'r, [Value]>, Failure> {
        let NodeWork::ForEach { over, max_items, .. } = &self.node.work else { return Ok(Cow::default()) };
        elements(over, *max_items, self.resolve(over)).map_err(|fault| failure(&fault))
    }

    fn items<'p>(&'p self, elements: &'p [Value]) -> Result<Items<'p, 'r>, Failure> {
        let NodeWork::ForEach { concurrency, each, .. } = &self.node.work else {
            unreachable!("only what is done for each element has items")
        };
        let each = match each {
            NodeEach::Scope(_) => ItemWork::Tasks,
            NodeEach::Job(template) => ItemWork::Job(template, self.pattern(template)?),
        };
        Ok(Items { preparation: self, elements, each, concurrency: concurrency.unwrap_or(u32::MAX) })
    }

    fn pattern<'p>(&'p self, template: &'p Template) -> Result<Option<Pattern<'p>>, Failure> {
        let Some(payload) = &template.payload else { return Ok(None) };
        let varies = |path: &Path| path.root == ITEM || path.root == INDEX;
        // As an element sees it: what is around it is the element of the fan-out that it is inside of.
        let mut iterations = self.task.position.iterations.clone();
        iterations.push(Iteration { item: 0, first: 0, element: None });
        let resolve = |path: &Path| self.resolve_from(path, &iterations);
        let lookup = Lookup { varies: &varies, resolve: &resolve, kept: &|path| self.kept(path) };
        let pattern = Pattern::read(payload, &lookup, DATA_LEN_MAX);
        pattern.map(Some).map_err(|fault| at_item(failure(&fault), 0))
    }

    fn take_numbers(&self, fan_out: FanOut, budget: &mut StepBudget) -> Result<(), Failure> {
        if fan_out.indices().end > RunId::TASK_INDEX_MAX {
            return Err(Failure::new(TOO_MANY_ITEMS, "the run has as many tasks as a run can have"));
        }
        budget.next_index += fan_out.items;
        Ok(())
    }

    /// The tasks of one element.
    pub(super) fn open_body(&self, budget: &mut StepBudget) -> Result<Prepared, Failure> {
        let NodeWork::ForEach { each: NodeEach::Scope(scope), .. } = &self.node.work else {
            // A job of a fan-out that was held back: it has its data.
            return Ok(Prepared::only(self.task.job_id, TaskChange::Release { payload: None }));
        };
        let first = budget.next_index;
        let mut iterations = self.task.position.iterations.clone();
        iterations.last_mut().expect("an item is in an iteration").first = first;
        let items = self.material.graph.scopes[*scope].nodes.len() as u32;
        let fan_out = FanOut { first, items, released: items, unmade: 0 };
        self.take_numbers(fan_out, budget)?;
        let fan_out_task = Some(self.task.position.index);
        let of_refused =
            |refused: StartRefused| Failure { message: refused.to_string(), ..failure(&refused.why) };
        let new = self
            .material
            .maker
            .scope(*scope, first, fan_out_task, &iterations, budget)
            .map_err(of_refused)?;
        budget.made(items, new.jobs.iter().map(data_len).sum());
        let expand = TaskChange::Expand { fan_out, fresh: true };
        Ok(Prepared { changes: vec![(self.task.job_id, expand)], new })
    }

    /// More of the items are made or may go, or all are done.
    pub(super) fn go_on(&self, fan_out: FanOut, budget: &mut StepBudget) -> Result<Prepared, Failure> {
        let id = |index| JobId::of_task(self.task.position.run, index);
        if fan_out.unmade > 0 {
            let elements = self.elements()?;
            if elements.len() != fan_out.items as usize {
                // Nobody changes what has ended; but nobody is to be surprised either.
                return Err(Failure::new(UNRESOLVED, "the array has another length than at first"));
            }
            return self.make(&self.items(&elements)?, fan_out, false, budget);
        }
        if self.task.parents.open == 0 {
            let data = |index| self.material.job(id(index));
            let fine =
                |index| data(index).is_some_and(|d| matches!(d.state, State::Completed | State::Skipped));
            if !fan_out.indices().all(fine) {
                return Ok(Prepared::default());
            }
            return self.join(fan_out, budget);
        }
        let NodeWork::ForEach { concurrency: Some(concurrency), each, .. } = &self.node.work else {
            return Ok(Prepared::default());
        };
        let not_ended = (fan_out.released + self.task.parents.open).saturating_sub(fan_out.items);
        let under_way = if self.material.items_are_idle { 0 } else { not_ended };
        let released = fan_out.items.min(fan_out.released + concurrency.saturating_sub(under_way));
        if self.task.position.role == TaskRole::Item || fan_out.released == fan_out.items {
            return Ok(Prepared::default());
        }
        if released == fan_out.released {
            // Whether those under way are blocked, and the next may go after all, is seen only from the whole.
            let reconcile_requests = vec![ReconcileRequest::id_of_run(self.task.position.run)];
            return Ok(Prepared {
                new: NewJobs { reconcile_requests, ..NewJobs::default() },
                ..Prepared::default()
            });
        }
        let next = (fan_out.first + fan_out.released)..(fan_out.first + released);
        let fan_out = FanOut { released, ..fan_out };
        let mut prepared = Prepared::only(self.task.job_id, TaskChange::Expand { fan_out, fresh: false });
        match each {
            NodeEach::Job(_) => {
                prepared.changes.extend(next.map(|index| (id(index), TaskChange::Release { payload: None })));
            }
            NodeEach::Scope(_) => prepared.new.reconcile_requests.extend(next.map(id)),
        }
        Ok(prepared)
    }

    /// The results of the items: of a list in its order, of an element's tasks those of the ones that nothing waits
    /// for.
    fn join(&self, fan_out: FanOut, budget: &mut StepBudget) -> Result<Prepared, Failure> {
        let result = |index| {
            let job = self.material.job(JobId::of_task(self.task.position.run, index));
            job.and_then(|job| job.result.as_ref()).map_or("null", JsonText::as_str)
        };
        let mut joined = Joined::default();
        match &self.node.work {
            NodeWork::ForEach { each: NodeEach::Scope(scope), .. }
                if self.task.position.role == TaskRole::Item =>
            {
                let scope = &self.material.graph.scopes[*scope];
                let of_node = |node: u32| result(fan_out.first + (node - scope.nodes.start));
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
                for index in fan_out.indices() {
                    joined.add(if index == fan_out.first { "[" } else { "," }, result(index))?;
                }
                joined.add("]", "")?;
            }
        }
        self.completed(joined.0, budget)
    }

    fn completed(&self, result: String, budget: &mut StepBudget) -> Result<Prepared, Failure> {
        budget.charge(result.len()).map_err(|fault| failure(&fault))?;
        budget.made(0, result.len());
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
                format!("the result of all its items would be over {DATA_LEN_MAX} bytes, which are allowed");
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
