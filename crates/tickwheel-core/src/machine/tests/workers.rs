//! Jobs for workers: what is held of them, and who gets them.

use super::*;
use crate::matching::Labels;

fn route(job_type: &str) -> Arc<Route> {
    Arc::new(Route::of_type("default", job_type))
}

fn for_worker(number: u128, job_type: &str, due_ms: i64) -> DueJob {
    DueJob { class: Class::Worker(route(job_type).id), ..job(number, due_ms) }
}

fn session(number: u128) -> SessionId {
    SessionId::from_uuid(Uuid::from_u128(number))
}

fn opened(number: u128, types: &[&str]) -> Event {
    let types = types.iter().map(|name| (*name).into()).collect();
    Event::SessionOpened(session(number), Arc::new(Offer::new(vec!["default".into()], types, Labels::new())))
}

fn wants(number: u128, jobs_max: usize) -> Event {
    Event::DemandChanged(session(number), Demand { jobs_max, ..Demand::default() })
}

fn claims(bench: &mut Bench) -> Vec<(Runner, Vec<JobId>)> {
    bench.claims.iter().map(|claim| (claim.runner, claim.jobs.clone())).collect()
}

#[test]
fn a_job_for_workers_goes_to_one_that_waits_at_its_time_and_not_before() {
    let mut bench = Bench::new(MachineOptions::default(), vec![for_worker(1, "send", 250)]);
    bench.send(Event::RoutesLearned(vec![route("send")]));
    bench.send(opened(1, &["send"]));
    bench.send(wants(1, 3));
    assert!(bench.machine.next_wake() <= at(250));
    bench.advance_to(249);
    assert!(bench.claims.is_empty());
    bench.advance_to(250);
    assert_eq!(claims(&mut bench), [(Runner::Worker(session(1)), vec![id(1)])]);
    assert_eq!(bench.machine.slots_free(), MachineOptions::default().slots, "it takes none of our own");
}

#[test]
fn jobs_that_nobody_can_run_are_neither_read_nor_held() {
    let mut bench = Bench::new(MachineOptions::default(), vec![for_worker(1, "send", 0)]);
    bench.send(Event::RoutesLearned(vec![route("send"), route("other")]));
    bench.send(Event::Learned(vec![for_worker(2, "send", 0)]));
    bench.send(opened(1, &["other"]));
    bench.send(wants(1, 3));
    bench.advance_to(60_000);
    assert_eq!(bench.machine.known(), 0);
    bench.stored.push(for_worker(2, "send", 0));
    bench.send(opened(2, &["send"]));
    assert_eq!(bench.machine.known(), 2, "found as soon as somebody can run them");
    bench.send(Event::SessionClosed(session(2)));
    assert_eq!(bench.machine.known(), 0, "and forgotten when nobody can");
    assert!(bench.claims.is_empty());
}

#[test]
fn a_million_jobs_without_a_worker_do_not_take_the_room_of_ten_with_one() {
    let options = MachineOptions { near_jobs_max: 100, load_len_max: 50, ..MachineOptions::default() };
    let mut stored: Vec<DueJob> = (0..5_000).map(|number| for_worker(number, "nobody", 0)).collect();
    stored.extend((0..10).map(|number| for_worker(10_000 + number, "send", 5)));
    stored.extend((0..10).map(|number| job(20_000 + number, 5)));
    let mut bench = Bench::new(options, stored);
    bench.send(Event::RoutesLearned(vec![route("nobody"), route("send")]));
    bench.send(opened(1, &["send"]));
    bench.send(wants(1, 10));
    bench.advance_to(5);
    let counts: Vec<usize> = bench.claims.iter().map(|claim| claim.jobs.len()).collect();
    assert_eq!(counts, [10, 10]);
    assert_eq!(bench.machine.known(), 20);
}

#[test]
fn a_claim_ends_the_wait_and_what_it_did_not_take_is_learned_again() {
    let mut bench = Bench::new(MachineOptions::default(), vec![for_worker(1, "send", 0)]);
    bench.send(Event::RoutesLearned(vec![route("send")]));
    bench.send(opened(1, &["send"]));
    bench.send(wants(1, 3));
    let claim = bench.claims.remove(0);
    bench.send(Event::ClaimFailed(claim));
    assert!(bench.claims.is_empty(), "nobody waits");
    bench.send(wants(1, 3));
    let claim = bench.claims.remove(0);
    bench.stored.clear();
    bench.send(taken_whole(claim));
    bench.send(wants(1, 3));
    assert!(bench.claims.is_empty() && bench.machine.known() == 0);
}

#[test]
fn a_backlog_for_workers_larger_than_memory_drains_completely() {
    let options = MachineOptions { near_jobs_max: 50, load_len_max: 20, ..MachineOptions::default() };
    let mut bench = Bench::new(options, (0..1_000).map(|n| for_worker(n, "send", (n % 10) as i64)).collect());
    bench.send(Event::RoutesLearned(vec![route("send")]));
    bench.send(opened(1, &["send"]));
    bench.advance_to(10);
    let mut done = HashSet::new();
    while done.len() < 1_000 {
        bench.send(wants(1, 7));
        let taken = bench.take_all();
        assert!(!taken.is_empty(), "stuck after {}", done.len());
        assert!(bench.machine.known() <= 50, "memory is bounded");
        for id in taken {
            assert!(done.insert(id), "{id} claimed twice");
        }
    }
}

#[test]
fn a_claim_that_ends_after_its_workers_came_back_is_counted_right() {
    let options = MachineOptions { near_jobs_max: 3, load_len_max: 3, ..MachineOptions::default() };
    let mut bench = Bench::new(options, (0..9).map(|n| for_worker(n, "send", 0)).collect());
    bench.send(Event::RoutesLearned(vec![route("send")]));
    bench.send(opened(1, &["send"]));
    bench.send(wants(1, 3));
    let claim = bench.claims.remove(0);
    bench.send(Event::SessionClosed(session(1)));
    bench.send(opened(2, &["send"]));
    bench.stored.retain(|job| !claim.jobs.contains(&job.id));
    bench.send(taken_whole(claim));
    let mut done = 0;
    while done < 6 {
        bench.send(wants(2, 2));
        let taken = bench.take_all().len();
        assert!(taken > 0, "stuck after {done}");
        done += taken;
        bench.advance_to(bench.now + 1_000);
    }
    assert_eq!(bench.machine.known(), 0);
}

#[test]
fn nothing_goes_to_workers_while_halted_and_everything_afterwards() {
    let mut bench = Bench::new(MachineOptions::default(), vec![for_worker(1, "send", 0)]);
    bench.send(Event::RoutesLearned(vec![route("send")]));
    bench.send(Event::HaltChanged(true));
    bench.send(opened(1, &["send"]));
    bench.send(wants(1, 3));
    assert!(bench.claims.is_empty());
    bench.send(Event::HaltChanged(false));
    assert_eq!(bench.take_all(), [id(1)]);
}

#[test]
fn a_job_for_workers_that_nobody_told_of_is_found_by_the_sweep() {
    let mut bench = Bench::new(MachineOptions::default(), Vec::new());
    bench.send(Event::RoutesLearned(vec![route("send")]));
    bench.send(opened(1, &["send"]));
    bench.send(wants(1, 1));
    bench.stored.push(for_worker(1, "send", 100));
    for step in 1..8 {
        bench.advance_to(step * 250);
    }
    assert_eq!(bench.take_all(), [id(1)]);
}

#[test]
fn a_forgotten_route_is_not_read_until_it_is_learned_again() {
    let mut bench = Bench::new(MachineOptions::default(), vec![for_worker(1, "send", 0)]);
    bench.send(Event::RoutesLearned(vec![route("send")]));
    bench.send(opened(1, &["send"]));
    assert_eq!(bench.machine.known(), 1);
    bench.send(Event::RoutesForgotten(IdSet::from_iter([route("send").id])));
    assert_eq!((bench.machine.known(), bench.machine.waiting()), (0, 0));
    bench.send(wants(1, 3));
    bench.advance_to(60_000);
    assert!(bench.claims.is_empty());
    bench.send(Event::RoutesLearned(vec![route("send")]));
    bench.advance_to(61_000);
    assert_eq!(claims(&mut bench), [(Runner::Worker(session(1)), vec![id(1)])]);
}

/// A claim is under way while its route is forgotten: whatever comes of it, nothing is pushed into a queue that is gone.
#[test]
fn a_claim_that_fails_after_its_route_was_forgotten_leaves_nothing_behind() {
    let mut bench = Bench::new(MachineOptions::default(), vec![for_worker(1, "send", 0)]);
    bench.send(Event::RoutesLearned(vec![route("send")]));
    bench.send(opened(1, &["send"]));
    bench.send(wants(1, 1));
    let claim = bench.claims.pop().expect("it is due");
    bench.send(Event::RoutesForgotten(IdSet::from_iter([route("send").id])));
    bench.send(Event::ClaimFailed(claim));
    assert_eq!((bench.machine.known(), bench.machine.waiting()), (0, 0));
}
