//! The machine stepped by hand.

mod workers;

use uuid::Uuid;

use super::*;
use crate::id::{Partition, ScheduleId};
use crate::matching::Class;
use crate::ports::FairShareGroup;

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

fn id(number: u128) -> JobId {
    JobId::from_uuid(Uuid::from_u128(number))
}

fn job(number: u128, due_ms: i64) -> DueJob {
    DueJob {
        id: id(number),
        partition: Partition(0),
        due_at: at(due_ms),
        priority: Priority::Normal,
        tenant: "default".into(),
        queue: "default".into(),
        group: FairShareGroup::REST,
        class: Class::BuiltIn,
    }
}

/// A machine whose loads are answered from a list of waiting jobs, as the store would.
struct Bench {
    machine: Machine,
    stored: Vec<DueJob>,
    claims: Vec<ClaimRequest>,
    now: i64,
}

impl Bench {
    fn new(options: MachineOptions, stored: Vec<DueJob>) -> Self {
        let machine = Machine::new(options, PartitionSet::ALL, at(0));
        let mut bench = Self { machine, stored, claims: Vec::new(), now: 0 };
        bench.send(Event::Tick);
        bench
    }

    fn send(&mut self, event: Event) {
        let mut events = vec![event];
        while let Some(event) = events.pop() {
            let mut effects = Vec::new();
            self.machine.handle(event, at(self.now), &mut effects);
            self.check_counts();
            for effect in effects {
                match effect {
                    Effect::Load(load) => events.push(Event::Loaded(load, self.answer(&load))),
                    Effect::Claim(claim) => self.claims.push(claim),
                }
            }
        }
    }

    /// Each window counts what is held of it, claims under way included.
    fn check_counts(&mut self) {
        let mut held: HashMap<(Class, Priority), usize> = HashMap::new();
        for entry in self.machine.entries.values() {
            *held.entry((entry.job.class, entry.job.priority)).or_default() += 1;
        }
        let classes: HashSet<Class> = held.keys().map(|(class, _)| *class).chain([Class::BuiltIn]).collect();
        for (class, priority) in classes.into_iter().flat_map(|class| Priority::ALL.map(|p| (class, p))) {
            let Some(window) = self.machine.windows.get(class, priority) else { continue };
            assert_eq!(window.held, held.get(&(class, priority)).copied().unwrap_or(0));
        }
    }

    fn answer(&self, load: &Load) -> Vec<DueJob> {
        let mut found: Vec<DueJob> = self
            .stored
            .iter()
            .filter(|j| j.priority == load.due.priority && j.class == load.due.class)
            .filter(|j| j.cursor() > load.due.after && j.due_at <= load.due.until)
            .cloned()
            .collect();
        found.sort_by_key(DueJob::cursor);
        found.truncate(load.due.limit);
        found
    }

    fn advance_to(&mut self, now: i64) {
        self.now = now;
        self.send(Event::Tick);
    }

    /// Takes the claims made so far, as the store would.
    fn take_all(&mut self) -> Vec<JobId> {
        let mut all = Vec::new();
        while let Some(claim) = (!self.claims.is_empty()).then(|| self.claims.remove(0)) {
            self.stored.retain(|job| !claim.jobs.contains(&job.id));
            all.extend(&claim.jobs);
            let freed = if claim.runner == Runner::BuiltIn { claim.jobs.len() } else { 0 };
            self.send(taken_whole(claim));
            self.send(Event::SlotsFreed(freed));
        }
        all
    }

    /// The jobs of the claims that are under way.
    fn claimed(&self) -> Vec<JobId> {
        self.claims.iter().flat_map(|claim| claim.jobs.clone()).collect()
    }
}

fn taken_whole(claim: ClaimRequest) -> Event {
    Event::Claimed { taken: claim.jobs.iter().copied().collect(), claim }
}

fn taken_nothing(claim: ClaimRequest) -> Event {
    Event::Claimed { taken: IdSet::default(), claim }
}

#[test]
fn a_job_is_claimed_at_its_time_and_not_before() {
    let mut bench = Bench::new(MachineOptions::default(), vec![job(1, 250)]);
    bench.advance_to(249);
    assert!(bench.claims.is_empty());
    assert_eq!(bench.machine.next_wake(), at(250));
    bench.advance_to(250);
    assert_eq!(bench.take_all(), [id(1)]);
}

#[test]
fn claims_stay_within_the_free_slots() {
    let options = MachineOptions { slots: 3, ..MachineOptions::default() };
    let mut bench = Bench::new(options, (0..10).map(|n| job(n, 0)).collect());
    assert_eq!(bench.claimed().len(), 3);
    assert_eq!(bench.machine.slots_free(), 0);
    let asked = bench.claims.remove(0);
    bench.send(taken_whole(asked));
    assert!(bench.claims.is_empty(), "no attempt is over yet");
    bench.send(Event::SlotsFreed(2));
    assert_eq!(bench.claimed().len(), 2);
}

#[test]
fn a_claim_that_takes_nothing_gives_its_slots_back() {
    let options = MachineOptions { slots: 2, ..MachineOptions::default() };
    let mut bench = Bench::new(options, vec![job(1, 0), job(2, 0)]);
    let asked = bench.claims.remove(0);
    bench.stored.clear();
    bench.send(taken_nothing(asked));
    assert_eq!(bench.machine.slots_free(), 2);
    assert_eq!(bench.machine.known(), 0);
}

#[test]
fn a_failed_claim_is_asked_again() {
    let mut bench = Bench::new(MachineOptions::default(), vec![job(1, 0)]);
    let asked = bench.claims.remove(0);
    bench.send(Event::ClaimFailed(asked));
    assert_eq!(bench.take_all(), [id(1)]);
}

#[test]
fn a_job_moved_while_it_was_being_claimed_is_not_lost() {
    let mut bench = Bench::new(MachineOptions::default(), vec![job(1, 0)]);
    bench.stored = vec![job(1, 5_000)];
    bench.send(Event::Learned(vec![job(1, 5_000)]));
    let asked = bench.claims.remove(0);
    bench.send(taken_nothing(asked));
    bench.advance_to(5_000);
    assert_eq!(bench.take_all(), [id(1)]);
}

#[test]
fn nothing_is_claimed_while_halted_and_everything_afterwards() {
    let mut bench = Bench::new(MachineOptions::default(), vec![job(1, 100)]);
    bench.send(Event::HaltChanged(true));
    bench.advance_to(200);
    assert!(bench.claims.is_empty());
    bench.send(Event::HaltChanged(false));
    assert_eq!(bench.take_all(), [id(1)]);
}

#[test]
fn a_paused_queue_is_forgotten_and_learned_again_when_resumed() {
    let mut bench = Bench::new(MachineOptions::default(), vec![job(1, 100)]);
    let stored = std::mem::take(&mut bench.stored);
    bench.send(Event::QueuePauseChanged("default".into(), true));
    bench.advance_to(5_000);
    assert!(bench.claims.is_empty());
    assert_eq!(bench.machine.known(), 0);
    bench.stored = stored;
    bench.send(Event::QueuePauseChanged("default".into(), false));
    assert_eq!(bench.take_all(), [id(1)]);
}

#[test]
fn a_paused_run_is_forgotten_and_learned_again_when_resumed() {
    let run = RunId::fresh(Uuid::from_u128(7 << 100));
    let task = |number, due| DueJob { group: FairShareGroup::of_run(run), ..job(number, due) };
    let mut bench = Bench::new(MachineOptions::default(), vec![task(1, 100), task(2, 9_000), job(3, 100)]);
    bench.stored = vec![job(3, 100)];
    bench.send(Event::RunPauseChanged(run, true));
    assert_eq!(bench.machine.known(), 1);
    bench.send(Event::Learned(vec![task(4, 0)]));
    bench.advance_to(5_000);
    assert_eq!(bench.take_all(), [id(3)], "other jobs go on, and what the run releases meanwhile waits");
    bench.stored = vec![task(1, 100), task(2, 9_000), task(4, 0)];
    bench.send(Event::RunPauseChanged(run, false));
    assert_eq!(bench.take_all(), [id(4), id(1)]);
    bench.advance_to(9_000);
    assert_eq!(bench.take_all(), [id(2)]);
}

#[test]
fn a_run_that_was_paused_through_another_server_is_followed() {
    let run = RunId::fresh(Uuid::from_u128(7 << 100));
    let task = DueJob { group: FairShareGroup::of_run(run), ..job(1, 100) };
    let read = |paused_runs| Event::ControlsRead(Controls { paused_runs, ..Controls::default() });
    let mut bench = Bench::new(MachineOptions::default(), vec![task.clone()]);
    bench.stored = Vec::new();
    bench.send(read(vec![run]));
    bench.advance_to(5_000);
    assert!(bench.claims.is_empty());
    bench.stored = vec![task];
    bench.send(read(Vec::new()));
    assert_eq!(bench.take_all(), [id(1)]);
}

#[test]
fn what_is_paused_when_the_process_starts_is_not_claimed() {
    let run = RunId::fresh(Uuid::from_u128(7 << 100));
    let mut bench = Bench::new(MachineOptions::default(), Vec::new());
    bench.machine.restore(Controls { paused_runs: vec![run], ..Controls::default() });
    bench.send(Event::Learned(vec![DueJob { group: FairShareGroup::of_run(run), ..job(1, 0) }, job(2, 0)]));
    assert_eq!(bench.take_all(), [id(2)]);
}

#[test]
fn a_job_nobody_told_of_is_found_by_the_sweep() {
    let mut bench = Bench::new(MachineOptions::default(), Vec::new());
    bench.stored.push(job(1, 100));
    bench.advance_to(1_100);
    assert_eq!(bench.take_all(), [id(1)]);
}

#[test]
fn a_job_due_long_ago_that_nobody_told_of_is_found_by_a_sweep_of_everything() {
    let mut bench = Bench::new(MachineOptions::default(), Vec::new());
    bench.advance_to(600_000);
    bench.stored.push(job(1, 100));
    bench.advance_to(614_000);
    assert!(bench.claims.is_empty(), "an ordinary sweep looks at the last seconds");
    bench.advance_to(615_000);
    assert_eq!(bench.take_all(), [id(1)]);
}

#[test]
fn a_sweep_of_everything_that_took_long_is_repeated_rarely() {
    let mut machine = Machine::new(MachineOptions::default(), PartitionSet::ALL, at(0));
    let (mut now, mut whole, mut effects) = (0, Vec::new(), Vec::new());
    while now < 300_000 {
        machine.handle(Event::Tick, at(now), &mut effects);
        let asked = std::mem::take(&mut effects);
        let began = now;
        now += 3_000;
        for effect in asked {
            let Effect::Load(load) = effect else { panic!("there is nothing to claim") };
            if load.purpose == LoadPurpose::Sweep
                && load.due.priority == Priority::Normal
                && load.due.after == DueCursor::START
            {
                whole.push(began);
            }
            machine.handle(Event::Loaded(load, Vec::new()), at(now), &mut effects);
        }
    }
    let pauses: Vec<i64> = whole.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(!pauses.is_empty() && pauses.iter().all(|pause| (60_000..=70_000).contains(pause)), "{whole:?}");
}

#[test]
fn a_job_moved_forward_without_a_word_is_found_by_the_sweep() {
    let mut bench = Bench::new(MachineOptions::default(), vec![job(1, 20_000)]);
    bench.stored = vec![job(1, 100)];
    bench.advance_to(1_100);
    assert_eq!(bench.take_all(), [id(1)]);
}

#[test]
fn a_backlog_larger_than_memory_drains_completely() {
    let options = MachineOptions {
        near_jobs_max: 50,
        load_len_max: 20,
        slots: 7,
        claim_len_max: 5,
        ..MachineOptions::default()
    };
    let mut bench = Bench::new(options, (0..1_000).map(|n| job(n, (n % 10) as i64)).collect());
    bench.advance_to(10);
    for number in 1_000..1_200 {
        bench.stored.push(job(number, 11));
        bench.send(Event::Learned(vec![job(number, 11)]));
        assert!(bench.machine.known() <= 50, "memory is bounded");
    }
    bench.advance_to(20);
    let mut done = HashSet::new();
    while done.len() < 1_200 {
        let taken = bench.take_all();
        assert!(!taken.is_empty(), "stuck after {}", done.len());
        for id in taken {
            assert!(done.insert(id), "{id} claimed twice");
        }
        bench.advance_to(bench.now + 1);
    }
}

#[test]
fn even_a_memory_of_one_job_drains_everything() {
    let options = MachineOptions { near_jobs_max: 1, ..MachineOptions::default() };
    let mut bench = Bench::new(options, (0..20).map(|n| job(n, 0)).collect());
    let mut done = 0;
    while done < 20 {
        let taken = bench.take_all().len();
        assert!(taken > 0, "stuck after {done}");
        done += taken;
        bench.advance_to(bench.now + 1);
    }
}

#[test]
fn a_small_tenant_gets_in_when_a_large_one_fills_the_memory() {
    let options = MachineOptions { near_jobs_max: 100, slots: 1, ..MachineOptions::default() };
    let mut bench = Bench::new(options, (0..500).map(|n| job(n, 0)).collect());
    bench.advance_to(10);
    let small = DueJob { tenant: "small".into(), ..job(9_999, 10) };
    bench.stored.push(small.clone());
    bench.send(Event::Learned(vec![small]));
    let asked = bench.claims.remove(0);
    bench.send(taken_whole(asked));
    bench.send(Event::SlotsFreed(1));
    assert_eq!(bench.claimed(), [id(9_999)]);
}

fn of_schedule(number: u128, due_ms: i64) -> DueJob {
    let schedule = ScheduleId::from_uuid(Uuid::from_u128(number));
    DueJob { group: FairShareGroup::of_schedule(schedule), ..job(number, due_ms) }
}

/// All of them due at the same moment, most of them only in the store.
#[test]
fn a_schedule_gets_in_when_other_jobs_of_its_tenant_fill_the_memory() {
    let options = MachineOptions { near_jobs_max: 100, slots: 1, ..MachineOptions::default() };
    let mut bench = Bench::new(options, (0..500).map(|n| job(n, 0)).collect());
    bench.advance_to(10);
    bench.stored.push(of_schedule(9_999, 10));
    bench.send(Event::Learned(vec![of_schedule(9_999, 10)]));
    assert!(bench.machine.known() <= 100, "memory is bounded");
    let mut done = Vec::new();
    while done.len() < 501 {
        let taken = bench.take_all();
        assert!(!taken.is_empty(), "stuck after {}", done.len());
        done.extend(taken);
        bench.advance_to(bench.now + 1);
    }
    let place = done.iter().position(|taken| *taken == id(9_999));
    assert!(place <= Some(3), "its turn comes at once: {place:?}");
}

#[test]
fn a_job_that_is_due_does_not_wait_for_memory_full_of_later_ones() {
    let options = MachineOptions { near_jobs_max: 100, slots: 1, ..MachineOptions::default() };
    let mut bench = Bench::new(options, (0..500).map(|n| job(n, 20_000)).collect());
    bench.advance_to(10);
    for number in 0..20 {
        bench.stored.push(job(9_000 + number, 10));
        bench.send(Event::Learned(vec![job(9_000 + number, 10)]));
        assert_eq!(bench.take_all(), [id(9_000 + number)]);
        assert!(bench.machine.known() <= 100, "memory is bounded");
    }
    bench.advance_to(20_000);
    let mut done = HashSet::new();
    while done.len() < 500 {
        let taken = bench.take_all();
        assert!(!taken.is_empty(), "stuck after {}", done.len());
        done.extend(taken);
        bench.advance_to(bench.now + 1);
    }
}

#[test]
fn memory_goes_back_when_the_jobs_are_gone() {
    let options = MachineOptions { slots: 50_000, claim_len_max: 50_000, ..MachineOptions::default() };
    let mut bench = Bench::new(options, Vec::new());
    bench.send(Event::Learned((0..50_000).map(|n| job(n, 0)).collect()));
    assert!(bench.machine.entries.capacity() >= 50_000);
    while !bench.claims.is_empty() {
        bench.take_all();
    }
    bench.advance_to(5_000);
    assert_eq!(bench.machine.known(), 0);
    assert!(bench.machine.entries.capacity() < 5_000, "{}", bench.machine.entries.capacity());
}

/// A sweep that walks over all of a large backlog would miss it.
#[test]
fn a_job_nobody_told_of_is_found_behind_a_backlog_larger_than_memory() {
    let options =
        MachineOptions { near_jobs_max: 100, load_len_max: 50, slots: 1, ..MachineOptions::default() };
    let mut bench = Bench::new(options, (0..5_000).map(|n| job(n, 0)).collect());
    for second in 1..30 {
        bench.advance_to(second * 1_000);
    }
    bench.stored.push(of_schedule(9_999, 29_500));
    bench.advance_to(31_500);
    let taken: Vec<JobId> = (0..4).flat_map(|_| bench.take_all()).collect();
    assert!(taken.contains(&id(9_999)), "{taken:?}");
}

#[test]
fn a_critical_job_does_not_wait_behind_a_full_window_of_low_ones() {
    let options = MachineOptions { near_jobs_max: 10, slots: 1, ..MachineOptions::default() };
    let mut jobs: Vec<DueJob> = (0..100).map(|n| DueJob { priority: Priority::Low, ..job(n, 0) }).collect();
    jobs.push(DueJob { priority: Priority::Critical, ..job(500, 5) });
    let mut bench = Bench::new(options, jobs);
    bench.advance_to(5);
    let asked = bench.claims.remove(0);
    bench.send(taken_whole(asked));
    bench.send(Event::SlotsFreed(1));
    assert_eq!(bench.claimed(), [id(500)]);
}

#[test]
fn losing_a_partition_drops_its_jobs_and_gaining_it_finds_them() {
    let mut bench = Bench::new(MachineOptions::default(), vec![job(1, 100)]);
    bench.send(Event::OwnershipChanged(PartitionSet::NONE));
    assert_eq!(bench.machine.known(), 0);
    bench.send(Event::OwnershipChanged(PartitionSet::ALL));
    bench.advance_to(100);
    assert_eq!(bench.take_all(), [id(1)]);
}

#[test]
fn it_does_not_wake_up_again_and_again_while_a_load_is_under_way() {
    let mut machine = Machine::new(MachineOptions::default(), PartitionSet::ALL, at(0));
    let mut effects = Vec::new();
    machine.handle(Event::Tick, at(5_000), &mut effects);
    assert_eq!(effects.len(), Priority::ALL.len(), "every priority is loading");
    assert!(machine.next_wake() > at(5_000));
}

#[test]
fn a_clock_that_is_set_back_is_followed() {
    const HOUR: i64 = 3_600_000;
    let mut bench = Bench::new(MachineOptions { slots: 0, ..MachineOptions::default() }, vec![job(1, HOUR)]);
    bench.advance_to(HOUR);
    assert_eq!(bench.machine.waiting(), 1, "due, and there is no slot");
    bench.advance_to(0);
    assert_eq!(bench.machine.waiting(), 0, "not due any more");
    bench.send(Event::Learned(vec![job(2, 500)]));
    assert!(bench.machine.next_wake() <= at(500));
    bench.advance_to(500);
    assert_eq!(bench.machine.waiting(), 1, "whoever comes after it does not wait for an hour");
    bench.advance_to(HOUR);
    assert_eq!(bench.machine.waiting(), 2);
}

#[test]
fn a_lost_hint_is_found_after_the_clock_was_set_back() {
    let mut bench = Bench::new(MachineOptions::default(), Vec::new());
    bench.advance_to(3_600_000);
    bench.advance_to(100_000);
    bench.stored.push(job(1, 100_500));
    bench.advance_to(101_000);
    bench.advance_to(102_000);
    assert_eq!(bench.take_all(), [id(1)]);
}

#[test]
fn a_claim_that_was_under_way_when_the_clock_was_set_back_takes_nothing_and_the_job_is_found_in_time() {
    let mut bench = Bench::new(MachineOptions::default(), vec![job(1, 50_000)]);
    bench.advance_to(50_000);
    let asked = bench.claims.remove(0);
    bench.advance_to(48_000);
    bench.send(taken_nothing(asked));
    bench.advance_to(49_900);
    assert!(bench.claims.is_empty());
    bench.advance_to(51_000);
    assert_eq!(bench.take_all(), [id(1)]);
}

#[test]
fn what_was_turned_through_another_server_is_followed() {
    let read = |halted, names: &[&str]| {
        let paused_queues = names.iter().map(|name| (*name).to_owned()).collect();
        Event::ControlsRead(Controls { halted, paused_queues, ..Controls::default() })
    };
    let other = DueJob { queue: "other".into(), ..job(2, 0) };
    let mut bench = Bench::new(MachineOptions::default(), Vec::new());
    bench.send(Event::HaltChanged(true));
    bench.stored = vec![job(1, 0), other];
    bench.send(read(true, &[]));
    assert!(bench.claims.is_empty());
    bench.send(read(false, &["other"]));
    assert!(bench.take_all().contains(&id(1)), "resumed by somebody else");
    bench.stored = vec![job(3, 0)];
    bench.send(read(false, &["default"]));
    bench.send(Event::Learned(vec![job(3, 0)]));
    assert!(!bench.take_all().contains(&id(3)), "paused by somebody else");
    bench.send(read(false, &[]));
    assert_eq!(bench.take_all(), [id(3)]);
}
