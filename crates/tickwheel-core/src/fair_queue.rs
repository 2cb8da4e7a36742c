//! The order in which due jobs go: priority first, then tenants by weight, then groups in turn, then time.
//!
//! Within a priority every tenant has a lane and a *pass*: a virtual time that grows by `STRIDE / weight` with each job
//! taken. The lane with the smallest pass goes next, so over any stretch in which tenants compete each gets its share,
//! however long the others' backlogs are. A lane that was empty joins at the current virtual time: nobody saves up
//! turns.
//!
//! A run, a schedule and the rest of a tenant's jobs are groups that take turns (`lane.rs`): a run of a million jobs
//! delays its tenant's other work by one job at a time.
//!
//! The backlog waits here and nowhere further on, which is why limits can still be applied when a job leaves.

mod lane;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use self::lane::Lane;
use crate::job::Priority;
use crate::ports::DueJob;

const STRIDE: u64 = 1 << 20;

/// Due jobs, waiting for their turn.
#[derive(Debug, Default)]
pub struct FairQueue {
    levels: [Level; Priority::ALL.len()],
    weights: HashMap<Arc<str>, u32>,
}

#[derive(Debug, Default)]
struct Level {
    lanes: HashMap<Arc<str>, Lane>,
    /// The lanes with jobs in them, the next one to be served first.
    turns: BTreeSet<(u64, Arc<str>)>,
    virtual_time: u64,
    len: usize,
}

impl FairQueue {
    /// Sets a tenant's share relative to the others; 1 unless set. Zero counts as one.
    pub fn set_weight(&mut self, tenant: &str, weight: u32) {
        self.weights.insert(tenant.into(), weight.max(1));
    }

    /// How many jobs wait.
    pub fn len(&self) -> usize {
        self.levels.iter().map(|level| level.len).sum()
    }

    /// How many jobs of a priority wait.
    pub const fn len_of(&self, priority: Priority) -> usize {
        self.levels[priority as usize].len
    }

    /// Whether no job waits.
    pub fn is_empty(&self) -> bool {
        self.levels.iter().all(|level| level.len == 0)
    }

    /// How many jobs of a tenant wait at a priority.
    pub fn lane_len(&self, priority: Priority, tenant: &str) -> usize {
        self.levels[priority as usize].lanes.get(tenant).map_or(0, Lane::len)
    }

    /// Adds a job. A job that is already there stays once.
    pub fn push(&mut self, job: DueJob) {
        self.levels[job.priority as usize].push(job);
    }

    /// Takes a job out of its turn.
    pub fn remove(&mut self, job: &DueJob) -> Option<DueJob> {
        self.levels[job.priority as usize].remove(job)
    }

    /// Takes the job whose turn it is.
    pub fn pop(&mut self) -> Option<DueJob> {
        let level = self.levels.iter_mut().find(|level| level.len > 0)?;
        level.pop(&self.weights)
    }

    /// The job whose turn it is.
    pub fn first(&self) -> Option<&DueJob> {
        let level = self.levels.iter().find(|level| level.len > 0)?;
        let (_, tenant) = level.turns.first()?;
        level.lanes.get(tenant)?.first()
    }

    /// Makes room for a job that is not here, if its tenant or its group has fewer jobs here than another one of its
    /// priority: takes the last job of the longest group of the longest lane.
    pub fn evict_for(&mut self, job: &DueJob) -> Option<DueJob> {
        self.levels[job.priority as usize].evict_for(job)
    }
}

impl Level {
    fn push(&mut self, job: DueJob) {
        let lane = self.lanes.entry(job.tenant.clone()).or_default();
        if lane.is_empty() {
            lane.pass = lane.pass.max(self.virtual_time);
            self.turns.insert((lane.pass, job.tenant.clone()));
        }
        if lane.push(job) {
            self.len += 1;
        }
    }

    fn remove(&mut self, job: &DueJob) -> Option<DueJob> {
        let lane = self.lanes.get_mut(&job.tenant)?;
        let job = lane.remove(job.group, job.cursor())?;
        self.conclude_removal(&job.tenant);
        Some(job)
    }

    fn evict_for(&mut self, job: &DueJob) -> Option<DueJob> {
        // By name among equals: the same history always gives the same decision.
        let (longest, lane) = self.lanes.iter().max_by_key(|(tenant, lane)| (lane.len(), *tenant))?;
        let own = self.lanes.get(&job.tenant);
        let tenant = if own.map_or(0, Lane::len) + 1 < lane.len() && *longest != job.tenant {
            longest.clone()
        } else {
            job.tenant.clone()
        };
        let group_len = if tenant == job.tenant { own?.group_len(job.group) + 1 } else { 0 };
        let evicted = self.lanes.get_mut(&tenant)?.evict(group_len)?;
        self.conclude_removal(&tenant);
        Some(evicted)
    }

    fn conclude_removal(&mut self, tenant: &Arc<str>) {
        self.len -= 1;
        if let Some(lane) = self.lanes.get(tenant).filter(|lane| lane.is_empty()) {
            self.turns.remove(&(lane.pass, tenant.clone()));
        }
    }

    fn pop(&mut self, weights: &HashMap<Arc<str>, u32>) -> Option<DueJob> {
        let (pass, tenant) = self.turns.pop_first()?;
        let lane = self.lanes.get_mut(&tenant)?;
        let job = lane.pop()?;
        self.len -= 1;
        self.virtual_time = pass;
        lane.pass = pass + STRIDE / u64::from(weights.get(&tenant).copied().unwrap_or(1));
        if !lane.is_empty() {
            self.turns.insert((lane.pass, tenant));
        }
        self.forget_idle_lanes();
        Some(job)
    }

    /// An empty lane must be remembered only while its pass is ahead of the others': its last turn still counts.
    fn forget_idle_lanes(&mut self) {
        if self.lanes.len() > 2 * self.turns.len() + 64 {
            let now = self.virtual_time;
            self.lanes.retain(|_, lane| !lane.is_empty() || lane.pass > now);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;
    use crate::id::{JobId, Partition, RunId, ScheduleId};
    use crate::matching::Class;
    use crate::ports::{DueCursor, FairShareGroup};
    use crate::time::Timestamp;

    pub(crate) fn job(number: u128, tenant: &str, priority: Priority, due_ms: i64) -> DueJob {
        DueJob {
            id: JobId::from_uuid(Uuid::from_u128(number)),
            partition: Partition(0),
            due_at: Timestamp::from_millis(due_ms),
            priority,
            tenant: tenant.into(),
            queue: "default".into(),
            group: FairShareGroup::REST,
            class: Class::BuiltIn,
        }
    }

    fn group(number: u128) -> FairShareGroup {
        FairShareGroup::of_schedule(ScheduleId::from_uuid(Uuid::from_u128(number)))
    }

    #[test]
    fn a_higher_priority_always_goes_first() {
        let mut queue = FairQueue::default();
        for (number, priority) in Priority::ALL.into_iter().rev().enumerate() {
            queue.push(job(number as u128, "a", priority, 0));
        }
        let order: Vec<Priority> = std::iter::from_fn(|| queue.pop()).map(|job| job.priority).collect();
        assert_eq!(order, Priority::ALL);
    }

    #[test]
    fn ten_jobs_of_one_tenant_do_not_wait_for_a_hundred_thousand_of_another() {
        let mut queue = FairQueue::default();
        for number in 0..100_000 {
            queue.push(job(number, "big", Priority::Normal, 0));
        }
        for number in 0..10 {
            queue.push(job(200_000 + number, "small", Priority::Normal, 99));
        }
        let last_small = (0..).find(|_| {
            queue.pop();
            queue.lane_len(Priority::Normal, "small") == 0
        });
        assert!(last_small.unwrap() <= 20);
    }

    #[test]
    fn an_idle_tenant_does_not_save_up_turns() {
        let mut queue = FairQueue::default();
        for number in 0..1_000 {
            queue.push(job(number, "busy", Priority::Normal, 0));
        }
        for _ in 0..500 {
            queue.pop();
        }
        for number in 0..100 {
            queue.push(job(5_000 + number, "late", Priority::Normal, 0));
        }
        let late = (0..100).filter(|_| queue.pop().is_some_and(|job| &*job.tenant == "late")).count();
        assert!((49..=51).contains(&late), "{late}");
    }

    #[test]
    fn a_schedule_does_not_wait_for_a_hundred_thousand_tasks_of_a_run() {
        let mut queue = FairQueue::default();
        let run = FairShareGroup::of_run(RunId::fresh(Uuid::from_u128(1 << 100)));
        for number in 0..100_000 {
            queue.push(DueJob { group: run, ..job(number, "a", Priority::Normal, 0) });
        }
        queue.pop();
        queue.push(DueJob { group: group(7), ..job(200_000, "a", Priority::Normal, 99) });
        queue.push(job(200_001, "a", Priority::Normal, 98));
        let next: Vec<FairShareGroup> = (0..4).map(|_| queue.pop().unwrap().group).collect();
        assert_eq!(next, [run, group(7), FairShareGroup::REST, run]);
    }

    /// The tenant's own groups, and other tenants.
    #[test]
    fn the_longest_group_makes_room_for_a_shorter_one() {
        let mut queue = FairQueue::default();
        let of = |group, number, tenant| DueJob { group, ..job(number, tenant, Priority::Normal, 0) };
        for number in 0..200 {
            queue.push(of(group(1), number, "a"));
            queue.push(of(group(2), 1_000 + number / 2, "a"));
        }
        assert_eq!(queue.evict_for(&of(group(1), 5_000, "a")), None, "it is the longest itself");
        let evicted = queue.evict_for(&of(group(3), 5_000, "a"));
        assert_eq!(evicted, Some(of(group(1), 199, "a")), "the last one of the longest");
        assert_eq!(queue.evict_for(&of(group(1), 5_000, "b")), Some(of(group(1), 198, "a")));
        assert_eq!(queue.len(), 298);
        let mut small = FairQueue::default();
        (0..10).for_each(|number| small.push(of(group(number), number, "a")));
        assert_eq!(small.evict_for(&of(group(99), 99, "a")), None, "nobody has more than another");
    }

    proptest! {
        /// Whatever comes and goes: a group that waits for its turn waits for one turn of each other group at the most.
        #[test]
        fn no_group_waits_longer_than_the_others_have_turns(
            steps in prop::collection::vec((0u128..6, 1usize..30, 0usize..12), 1..60),
        ) {
            let mut queue = FairQueue::default();
            let (mut number, mut waited) = (0, HashMap::new());
            for (name, pushes, pops) in steps {
                for _ in 0..pushes {
                    number += 1;
                    let due = i64::try_from(number % 7).unwrap();
                    queue.push(DueJob { group: group(name), ..job(number, "a", Priority::Normal, due) });
                }
                waited.entry(group(name)).or_insert(0);
                for _ in 0..pops {
                    let Some(job) = queue.pop() else { continue };
                    waited.values_mut().for_each(|turns| *turns += 1);
                    let lane = &queue.levels[Priority::Normal as usize].lanes["a"];
                    waited.insert(job.group, 0);
                    waited.retain(|group, _| lane.group_len(*group) > 0);
                    prop_assert!(waited.values().all(|turns| *turns < 6), "{waited:?}");
                }
            }
        }

        /// While tenants compete, each gets its share by weight, to within one turn.
        #[test]
        fn no_tenant_starves(weights in prop::collection::vec(1u32..8, 2..6), rounds in 1usize..40) {
            let mut queue = FairQueue::default();
            let total: u32 = weights.iter().sum();
            let takes = rounds * total as usize;
            for (tenant, weight) in weights.iter().enumerate() {
                queue.set_weight(&tenant.to_string(), *weight);
                for number in 0..takes {
                    queue.push(job((tenant * 1_000_000 + number) as u128, &tenant.to_string(), Priority::Normal, number as i64));
                }
            }
            let mut taken = vec![0usize; weights.len()];
            for _ in 0..takes {
                let job = queue.pop().unwrap();
                taken[job.tenant.parse::<usize>().unwrap()] += 1;
            }
            for (tenant, weight) in weights.iter().enumerate() {
                let share = rounds * *weight as usize;
                prop_assert!(taken[tenant].abs_diff(share) <= 2, "tenant {tenant}: {} of {share}", taken[tenant]);
            }
        }

        /// Whatever is pushed comes out exactly once, removals aside, and each group of a lane in the order of time.
        #[test]
        fn nothing_is_lost_or_doubled(jobs in prop::collection::vec((0u8..4, 0u8..3, 0i64..50, any::<bool>(), 0u128..3), 0..200)) {
            let mut queue = FairQueue::default();
            let mut expected = 0;
            for (number, (priority, tenant, due, remove, name)) in jobs.into_iter().enumerate() {
                let job = job(number as u128, &tenant.to_string(), Priority::ALL[usize::from(priority)], due);
                let job = DueJob { group: group(name), ..job };
                queue.push(job.clone());
                queue.push(job.clone());
                if remove {
                    prop_assert_eq!(queue.remove(&job), Some(job.clone()));
                    prop_assert_eq!(queue.remove(&job), None);
                } else {
                    expected += 1;
                }
            }
            prop_assert_eq!(queue.len(), expected);
            let mut latest: HashMap<(Priority, Arc<str>, FairShareGroup), DueCursor> = HashMap::new();
            for _ in 0..expected {
                let job = queue.pop().unwrap();
                let before = latest.insert((job.priority, job.tenant.clone(), job.group), job.cursor());
                prop_assert!(before.is_none_or(|before| before < job.cursor()));
            }
            prop_assert!(queue.is_empty() && queue.pop().is_none());
        }
    }
}
