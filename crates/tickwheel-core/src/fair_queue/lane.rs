//! The due jobs of one tenant at one priority: groups take turns, and within a group time decides.
//!
//! Whoever had a turn goes to the end of the line, and so does a group whose first job arrives: a group with a job
//! waits for one turn of each other group at the most, however many jobs they have. A group without jobs is not
//! remembered.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;

use crate::id::IdMap;
use crate::ports::{DueCursor, DueJob, FairShareGroup};

/// A group with more jobs than this is large: it may have to give up some of them. So there are few of those to choose
/// from.
const LARGE_LEN: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Lane {
    /// How often the tenant had its turn, in the virtual time of its priority.
    pub pass: u64,
    groups: IdMap<FairShareGroup, Backlog>,
    /// The line of groups.
    turns: BTreeMap<u64, FairShareGroup>,
    next_turn: u64,
    large: BTreeSet<FairShareGroup>,
    len: usize,
}

/// The jobs of a group. There is always a first one; most groups have no other, and then cost no allocation.
#[derive(Debug)]
struct Backlog {
    turn: u64,
    first: DueJob,
    later: BTreeMap<DueCursor, DueJob>,
}

impl Backlog {
    fn len(&self) -> usize {
        1 + self.later.len()
    }

    fn last(&self) -> DueCursor {
        self.later.last_key_value().map_or(self.first.cursor(), |(last, _)| *last)
    }

    /// Says whether the job is new.
    fn insert(&mut self, mut job: DueJob) -> bool {
        if job.cursor() == self.first.cursor() {
            return false;
        }
        if job.cursor() < self.first.cursor() {
            mem::swap(&mut job, &mut self.first);
        }
        self.later.insert(job.cursor(), job).is_none()
    }
}

impl Lane {
    pub const fn len(&self) -> usize {
        self.len
    }

    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn group_len(&self, group: FairShareGroup) -> usize {
        self.groups.get(&group).map_or(0, Backlog::len)
    }

    /// Adds a job. Says whether it is new.
    pub fn push(&mut self, job: DueJob) -> bool {
        let group = job.group;
        let Some(backlog) = self.groups.get_mut(&group) else {
            let turn = self.take_turn(group);
            self.groups.insert(group, Backlog { turn, first: job, later: BTreeMap::new() });
            self.len += 1;
            return true;
        };
        let is_new = backlog.insert(job);
        if is_new {
            self.len += 1;
            if backlog.len() == LARGE_LEN + 1 {
                self.large.insert(group);
            }
        }
        is_new
    }

    /// The first job of the group whose turn it is.
    pub fn first(&self) -> Option<&DueJob> {
        let (_, group) = self.turns.first_key_value()?;
        self.groups.get(group).map(|backlog| &backlog.first)
    }

    /// Takes the first job of the group whose turn it is.
    pub fn pop(&mut self) -> Option<DueJob> {
        let (turn, group) = self.turns.first_key_value().map(|(turn, group)| (*turn, *group))?;
        let job = self.take_first(group)?;
        // One that is alone stays where it is.
        if self.groups.len() > 1 && self.groups.contains_key(&group) {
            self.turns.remove(&turn);
            let turn = self.take_turn(group);
            self.groups.get_mut(&group)?.turn = turn;
        }
        Some(job)
    }

    /// Takes a job out of its turn.
    pub fn remove(&mut self, group: FairShareGroup, at: DueCursor) -> Option<DueJob> {
        let backlog = self.groups.get_mut(&group)?;
        if backlog.first.cursor() == at {
            return self.take_first(group);
        }
        let job = backlog.later.remove(&at)?;
        self.count_down(group);
        Some(job)
    }

    /// Takes the last job of the longest group that is longer than `than`, or, if none is large, of the one that is
    /// last in line.
    pub fn evict(&mut self, than: usize) -> Option<DueJob> {
        let len_of = |group: &FairShareGroup| (self.group_len(*group), *group);
        let longest = self.large.iter().map(len_of).max();
        let last_in_line = || self.turns.last_key_value().map(|(_, group)| len_of(group));
        let (_, group) = longest.or_else(last_in_line).filter(|(len, _)| *len > than)?;
        let last = self.groups.get(&group)?.last();
        self.remove(group, last)
    }

    fn take_turn(&mut self, group: FairShareGroup) -> u64 {
        let turn = self.next_turn;
        self.next_turn += 1;
        self.turns.insert(turn, group);
        turn
    }

    fn take_first(&mut self, group: FairShareGroup) -> Option<DueJob> {
        let backlog = self.groups.get_mut(&group)?;
        if let Some((_, next)) = backlog.later.pop_first() {
            let job = mem::replace(&mut backlog.first, next);
            self.count_down(group);
            return Some(job);
        }
        let backlog = self.groups.remove(&group)?;
        self.turns.remove(&backlog.turn);
        self.len -= 1;
        Some(backlog.first)
    }

    /// One job less, of a group that has others.
    fn count_down(&mut self, group: FairShareGroup) {
        self.len -= 1;
        if !self.large.is_empty() && self.group_len(group) == LARGE_LEN {
            self.large.remove(&group);
        }
    }
}
