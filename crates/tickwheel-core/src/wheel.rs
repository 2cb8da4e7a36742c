//! A hierarchical timing wheel: arm, disarm and fire timers in constant time, to the millisecond.
//!
//! Six levels of 64 slots. Level 0 holds the current 64 ms, one slot a millisecond; level 1 the current 4 s, one slot
//! 64 ms; and so on, up to two years. Time moves by jumping from one occupied slot to the next; a slot of a higher
//! level is emptied into lower ones when its time begins. What lies beyond the top level waits in it and is put back
//! until it is near.
//!
//! Invariants: nothing fires before its time; what one call to [`Wheel::advance`] returns is in the order of time;
//! every timer fires once unless removed. Waiting is not done here: [`Wheel::next_wake`] says when to come back.

use crate::time::Timestamp;

const LEVELS: usize = 6;
const SLOT_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;
/// The list of timers that were due already when they were armed.
const OVERDUE: usize = LEVELS * SLOTS;
const NIL: u32 = u32::MAX;

/// Names an armed timer. Stays harmless after the timer has fired: it then names nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimerKey {
    index: u32,
    generation: u32,
}

#[derive(Debug)]
struct Node<T> {
    value: Option<T>,
    at: u64,
    list: u32,
    prev: u32,
    next: u32,
    generation: u32,
}

#[derive(Clone, Copy, Debug)]
struct List {
    head: u32,
    tail: u32,
}

const EMPTY: List = List { head: NIL, tail: NIL };

/// Timers carrying a `T` each.
#[derive(Debug)]
pub struct Wheel<T> {
    origin: Timestamp,
    elapsed: u64,
    nodes: Vec<Node<T>>,
    free: u32,
    lists: Vec<List>,
    occupied: [u64; LEVELS],
    len: usize,
}

impl<T> Wheel<T> {
    /// An empty wheel whose time begins at `now`.
    pub fn new(now: Timestamp) -> Self {
        Self {
            origin: now,
            elapsed: 0,
            nodes: Vec::new(),
            free: NIL,
            lists: vec![EMPTY; LEVELS * SLOTS + 1],
            occupied: [0; LEVELS],
            len: 0,
        }
    }

    /// How many timers are armed.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether no timer is armed.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Arms a timer. A time that has passed fires at the next advance.
    pub fn insert(&mut self, at: Timestamp, value: T) -> TimerKey {
        let at = self.ticks(at);
        let index = self.allocate(value, at);
        self.place(index);
        self.len += 1;
        TimerKey { index, generation: self.nodes[index as usize].generation }
    }

    /// Disarms a timer and gives back what it carried, unless it has fired.
    pub fn remove(&mut self, key: TimerKey) -> Option<T> {
        let node = self.nodes.get(key.index as usize)?;
        if node.generation != key.generation || node.value.is_none() {
            return None;
        }
        self.unlink(key.index);
        Some(self.release(key.index))
    }

    /// Moves time to `now` and appends what became due to `fired`, in the order of time. Time never moves back.
    pub fn advance(&mut self, now: Timestamp, fired: &mut Vec<(Timestamp, T)>) {
        let first = fired.len();
        let now = self.ticks(now);
        self.fire_list(OVERDUE, fired);
        while let Some((level, slot, starts)) = self.next_slot() {
            if starts > now {
                break;
            }
            self.elapsed = starts;
            self.empty_slot(level, slot, fired);
        }
        self.elapsed = self.elapsed.max(now);
        // Slots come out in order; only timers that were late when armed can stand out of line.
        fired[first..].sort_by_key(|(at, _)| *at);
    }

    /// The moment before which advancing is pointless, or `None` when nothing is armed.
    pub fn next_wake(&self) -> Option<Timestamp> {
        if self.lists[OVERDUE].head != NIL {
            return Some(self.time(self.elapsed));
        }
        self.next_slot().map(|(_, _, starts)| self.time(starts))
    }

    fn ticks(&self, at: Timestamp) -> u64 {
        u64::try_from(at.as_millis().saturating_sub(self.origin.as_millis())).unwrap_or(0)
    }

    fn time(&self, ticks: u64) -> Timestamp {
        let ticks = i64::try_from(ticks).unwrap_or(i64::MAX);
        Timestamp::from_millis(self.origin.as_millis().saturating_add(ticks))
    }

    /// The next occupied slot and when its time begins.
    fn next_slot(&self) -> Option<(usize, usize, u64)> {
        let level = self.occupied.iter().position(|bits| *bits != 0)?;
        let shift = SLOT_BITS * level as u32;
        let current = (self.elapsed >> shift) as usize % SLOTS;
        let ahead = self.occupied[level].rotate_right(current as u32).trailing_zeros() as usize;
        let slot = (current + ahead) % SLOTS;
        let level_span = 1u64 << (shift + SLOT_BITS);
        let mut starts = (self.elapsed & !(level_span - 1)) + ((slot as u64) << shift);
        // Only the top level can wrap around: below it, a timer sits in a slot ahead of the current one.
        if starts <= self.elapsed {
            starts += level_span;
        }
        Some((level, slot, starts))
    }

    fn empty_slot(&mut self, level: usize, slot: usize, fired: &mut Vec<(Timestamp, T)>) {
        let list = level * SLOTS + slot;
        let mut index = std::mem::replace(&mut self.lists[list], EMPTY).head;
        self.occupied[level] &= !(1 << slot);
        while index != NIL {
            let next = self.nodes[index as usize].next;
            if self.nodes[index as usize].at <= self.elapsed {
                self.fire(index, fired);
            } else {
                self.place(index);
            }
            index = next;
        }
    }

    fn fire_list(&mut self, list: usize, fired: &mut Vec<(Timestamp, T)>) {
        let mut index = std::mem::replace(&mut self.lists[list], EMPTY).head;
        while index != NIL {
            let next = self.nodes[index as usize].next;
            self.fire(index, fired);
            index = next;
        }
    }

    fn fire(&mut self, index: u32, fired: &mut Vec<(Timestamp, T)>) {
        let at = self.time(self.nodes[index as usize].at);
        let value = self.release(index);
        fired.push((at, value));
    }

    /// Puts a node into the list its time belongs to, seen from `elapsed`.
    fn place(&mut self, index: u32) {
        let at = self.nodes[index as usize].at;
        let list = if at <= self.elapsed {
            OVERDUE
        } else {
            // At most 63 slots ahead on the top level: one more would land in the slot time is in now.
            let farthest = (SLOTS as u64 - 1) << (SLOT_BITS * (LEVELS as u32 - 1));
            let seen = at.min(self.elapsed.saturating_add(farthest));
            let differing = (self.elapsed ^ seen) | (SLOTS as u64 - 1);
            let level = (((63 - differing.leading_zeros()) / SLOT_BITS) as usize).min(LEVELS - 1);
            let slot = (seen >> (SLOT_BITS * level as u32)) as usize % SLOTS;
            self.occupied[level] |= 1 << slot;
            level * SLOTS + slot
        };
        self.link(index, list);
    }

    fn link(&mut self, index: u32, list: usize) {
        let tail = self.lists[list].tail;
        let node = &mut self.nodes[index as usize];
        node.list = list as u32;
        node.prev = tail;
        node.next = NIL;
        match tail {
            NIL => self.lists[list].head = index,
            tail => self.nodes[tail as usize].next = index,
        }
        self.lists[list].tail = index;
    }

    fn unlink(&mut self, index: u32) {
        let Node { list, prev, next, .. } = self.nodes[index as usize];
        let list = list as usize;
        match prev {
            NIL => self.lists[list].head = next,
            prev => self.nodes[prev as usize].next = next,
        }
        match next {
            NIL => self.lists[list].tail = prev,
            next => self.nodes[next as usize].prev = prev,
        }
        if list != OVERDUE && self.lists[list].head == NIL {
            self.occupied[list / SLOTS] &= !(1 << (list % SLOTS));
        }
    }

    fn allocate(&mut self, value: T, at: u64) -> u32 {
        if self.free == NIL {
            let node = Node { value: Some(value), at, list: 0, prev: NIL, next: NIL, generation: 0 };
            let index = u32::try_from(self.nodes.len()).ok().filter(|index| *index != NIL);
            self.nodes.push(node);
            return index.expect("memory ends before four billion timers do");
        }
        let index = self.free;
        let node = &mut self.nodes[index as usize];
        self.free = node.next;
        node.value = Some(value);
        node.at = at;
        index
    }

    fn release(&mut self, index: u32) -> T {
        let free = self.free;
        let node = &mut self.nodes[index as usize];
        node.generation = node.generation.wrapping_add(1);
        node.next = free;
        self.free = index;
        self.len -= 1;
        node.value.take().expect("a linked node carries its value")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn fired(wheel: &mut Wheel<u32>, now: i64) -> Vec<u32> {
        let mut out = Vec::new();
        wheel.advance(at(now), &mut out);
        out.into_iter().map(|(_, value)| value).collect()
    }

    #[test]
    fn the_places_of_timers_that_are_gone_are_used_again() {
        let mut wheel = Wheel::new(at(0));
        for round in 0..1_000 {
            let keys: Vec<TimerKey> = (0..3).map(|number| wheel.insert(at(round * 10 + number), 7)).collect();
            wheel.remove(keys[1]);
            assert_eq!(fired(&mut wheel, round * 10 + 5).len(), 2);
        }
        assert_eq!(wheel.nodes.len(), 3, "as many as there ever were at once");
    }

    #[test]
    fn fires_to_the_millisecond_on_every_level() {
        for distance in [
            0,
            1,
            63,
            64,
            65,
            4_095,
            4_096,
            262_144,
            16_777_216,
            1_073_741_824,
            68_719_476_736,
            200_000_000_000,
        ] {
            let mut wheel = Wheel::new(at(1_000));
            wheel.insert(at(1_000 + distance), 7);
            if distance > 0 {
                assert!(fired(&mut wheel, 999 + distance).is_empty(), "{distance} ms: too early");
            }
            assert_eq!(fired(&mut wheel, 1_000 + distance), [7], "{distance} ms: not in time");
            assert!(wheel.is_empty());
        }
    }

    #[test]
    fn an_old_key_does_not_remove_the_timer_that_took_its_place() {
        let mut wheel = Wheel::new(at(0));
        let old = wheel.insert(at(5), 1);
        assert_eq!(fired(&mut wheel, 5), [1]);
        wheel.insert(at(9), 2);
        assert_eq!(wheel.remove(old), None);
        assert_eq!(fired(&mut wheel, 9), [2]);
    }

    #[derive(Clone, Debug)]
    enum Op {
        Insert(i64),
        Remove(usize),
        Advance(i64),
    }

    fn op() -> impl Strategy<Value = Op> {
        let distance = prop_oneof![-100i64..200, 0i64..10_000, 0i64..100_000_000, 0i64..200_000_000_000];
        prop_oneof![
            4 => distance.clone().prop_map(Op::Insert),
            1 => any::<usize>().prop_map(Op::Remove),
            2 => prop_oneof![0i64..100, 0i64..70_000, 0i64..100_000_000_000].prop_map(Op::Advance),
        ]
    }

    proptest! {
        #[test]
        fn behaves_like_a_sorted_map(ops in prop::collection::vec(op(), 1..200), start in -1_000_000i64..1_000_000_000_000) {
            let mut wheel = Wheel::new(at(start));
            let mut naive: BTreeMap<u32, (i64, TimerKey)> = BTreeMap::new();
            let mut now = start;
            for (number, op) in (0u32..).zip(ops) {
                match op {
                    Op::Insert(distance) => {
                        let due = now + distance;
                        let key = wheel.insert(at(due), number);
                        naive.insert(number, (due, key));
                    }
                    Op::Remove(pick) if !naive.is_empty() => {
                        let id = *naive.keys().nth(pick % naive.len()).unwrap();
                        let (_, key) = naive.remove(&id).unwrap();
                        prop_assert_eq!(wheel.remove(key), Some(id));
                        prop_assert_eq!(wheel.remove(key), None);
                    }
                    Op::Remove(_) => {}
                    Op::Advance(by) => {
                        now += by;
                        let wake = wheel.next_wake();
                        let mut out = Vec::new();
                        wheel.advance(at(now), &mut out);
                        if wake.is_some_and(|wake| wake > at(now)) {
                            prop_assert!(out.is_empty(), "fired before next_wake");
                        }
                        prop_assert!(out.is_sorted_by_key(|(at, _)| *at), "out of order");
                        let mut got: Vec<u32> = out.iter().map(|(_, id)| *id).collect();
                        let mut due: Vec<u32> =
                            naive.iter().filter(|(_, (due, _))| *due <= now).map(|(id, _)| *id).collect();
                        got.sort_unstable();
                        due.sort_unstable();
                        prop_assert_eq!(&got, &due);
                        naive.retain(|id, _| !due.contains(id));
                    }
                }
                prop_assert_eq!(wheel.len(), naive.len());
                prop_assert_eq!(wheel.next_wake().is_some(), !naive.is_empty());
            }
        }
    }
}
