//! Matching by hand, and against a naive one that scans everything.

mod naive;

use uuid::Uuid;

use super::*;
use crate::fair_queue::tests::job;
use crate::job::Priority;

fn normal(number: u128) -> DueJob {
    job(number, "a", Priority::Normal, 0)
}

fn session(number: u128) -> SessionId {
    SessionId::from_uuid(Uuid::from_u128(number))
}

fn route_of(job_type: &str) -> Arc<Route> {
    Arc::new(Route::of_type("default", job_type))
}

fn gpu() -> Labels {
    Labels::from([("gpu".to_owned(), Label::Flag(true))])
}

fn offer(types: &[&str], labels: Labels) -> Arc<Offer> {
    Arc::new(Offer::new(vec!["default".into()], types.iter().map(|name| (*name).into()).collect(), labels))
}

fn up_to(jobs_max: usize) -> Demand {
    Demand { jobs_max, ..Demand::default() }
}

/// Everything that starts now: who starts which jobs, by number.
fn starts(matching: &mut Matching) -> Vec<(u128, Vec<u128>)> {
    let number = |job: &DueJob| job.id.as_uuid().as_u128();
    std::iter::from_fn(|| matching.next_start())
        .map(|(session, jobs)| (session.as_uuid().as_u128(), jobs.iter().map(number).collect()))
        .collect()
}

/// One session that serves the types, each with its route known.
fn with_session(types: &[&str]) -> (Matching, Vec<RouteId>) {
    let mut matching = Matching::default();
    let routes: Vec<Arc<Route>> = types.iter().map(|name| route_of(name)).collect();
    routes.iter().for_each(|route| matching.learn_route(route.clone()));
    matching.open_session(session(1), offer(types, Labels::new()));
    (matching, routes.iter().map(|route| route.id).collect())
}

#[test]
fn a_job_goes_to_a_waiting_session_at_once_and_to_nobody_else() {
    let (mut matching, routes) = with_session(&["send"]);
    assert!(matching.push(routes[0], normal(1)));
    assert_eq!(starts(&mut matching), [], "a session that does not wait gets nothing");
    matching.wait(session(1), up_to(5));
    assert_eq!(starts(&mut matching), [(1, vec![1])]);
    matching.push(routes[0], normal(2));
    assert_eq!(starts(&mut matching), [], "it has its answer and waits no more");
    matching.wait(session(1), up_to(5));
    matching.wait(session(1), Demand::default());
    assert_eq!(starts(&mut matching), [], "it gave up waiting");
}

#[test]
fn a_session_gets_no_more_than_it_has_places_for() {
    let (mut matching, routes) = with_session(&["send", "render"]);
    for number in 0..10 {
        matching.push(routes[usize::from(number >= 5)], normal(number));
    }
    let by_type = HashMap::from([("render".into(), 1)]);
    matching.wait(session(1), Demand { jobs_max: 4, by_type });
    assert_eq!(starts(&mut matching), [(1, vec![0, 1, 2, 3])]);
    let by_type = HashMap::from([("render".into(), 1)]);
    matching.wait(session(1), Demand { jobs_max: 4, by_type });
    assert_eq!(starts(&mut matching), [(1, vec![4, 5])]);
    let by_type = HashMap::from([("render".into(), 0)]);
    matching.wait(session(1), Demand { jobs_max: 4, by_type });
    assert_eq!(starts(&mut matching), [], "no place for those that are left");
    matching.push(routes[0], normal(20));
    assert_eq!(starts(&mut matching), [(1, vec![20])]);
}

#[test]
fn work_that_many_can_do_goes_to_the_least_special_and_then_to_who_waits_longest() {
    let (mut matching, routes) = with_session(&["send"]);
    matching.open_session(session(2), offer(&["send"], Labels::new()));
    matching.open_session(session(3), offer(&["send"], gpu()));
    matching.wait(session(3), up_to(1));
    matching.wait(session(2), up_to(1));
    matching.wait(session(1), up_to(1));
    (0..3).for_each(|number| assert!(matching.push(routes[0], normal(number))));
    assert_eq!(starts(&mut matching), [(2, vec![0]), (1, vec![1]), (3, vec![2])]);
}

#[test]
fn a_job_with_requirements_waits_for_who_meets_them_and_is_served_by_nobody_else() {
    let (mut matching, _) = with_session(&["send"]);
    let special = Arc::new(Route::new("default".into(), Skill::Handler("send".into()), gpu()));
    matching.learn_route(special.clone());
    matching.push(special.id, normal(1));
    matching.wait(session(1), up_to(1));
    assert_eq!(starts(&mut matching), []);
    assert!(!matching.is_served(special.id));
    matching.open_session(session(2), offer(&["send"], gpu()));
    assert!(matching.is_served(special.id));
    matching.wait(session(2), up_to(1));
    assert_eq!(starts(&mut matching), [(2, vec![1])]);
    matching.close_session(session(2));
    assert!(!matching.is_served(special.id));
}

#[test]
fn urgent_work_of_any_route_goes_first_and_then_tenants_take_turns() {
    let (mut matching, routes) = with_session(&["send", "render"]);
    for number in 0..5 {
        matching.push(routes[0], job(number, "many", Priority::Normal, 0));
    }
    matching.push(routes[1], job(10, "few", Priority::Normal, 99));
    matching.push(routes[1], job(11, "few", Priority::Critical, 99));
    matching.wait(session(1), up_to(4));
    assert_eq!(starts(&mut matching), [(1, vec![11, 0, 10, 1])]);
}

#[test]
fn a_tenant_with_many_types_does_not_delay_one_with_one() {
    let types: Vec<String> = (0..1_000).map(|number| number.to_string()).collect();
    let types: Vec<&str> = types.iter().map(String::as_str).collect();
    let (mut matching, routes) = with_session(&types);
    let (own, shared) = routes.split_last().unwrap();
    for (number, route) in shared.iter().enumerate() {
        matching.push(*route, job(number as u128, "many", Priority::Normal, 0));
    }
    (0..5).for_each(|number| assert!(matching.push(*own, job(5_000 + number, "few", Priority::Normal, 99))));
    matching.wait(session(1), up_to(10));
    let (_, jobs) = matching.next_start().unwrap();
    let few = jobs.iter().filter(|job| &*job.tenant == "few").count();
    assert_eq!(few, 5);
}

#[test]
fn what_is_left_of_a_session_that_is_gone_is_nothing() {
    let (mut matching, routes) = with_session(&["send"]);
    matching.wait(session(1), up_to(1));
    matching.wait(session(1), Demand { jobs_max: 2, by_type: HashMap::from([("send".into(), 0)]) });
    matching.close_session(session(1));
    matching.push(routes[0], normal(1));
    assert_eq!(starts(&mut matching), []);
    assert!(matching.pools.is_empty() && matching.by_offer.is_empty() && matching.active.is_empty());
    assert!(matching.routes[&routes[0]].pools.is_empty());
}

#[test]
fn a_route_that_is_forgotten_is_in_nobodys_way_and_can_come_back() {
    let (mut matching, routes) = with_session(&["send", "render"]);
    matching.push(routes[0], normal(1));
    matching.wait(session(1), up_to(5));
    matching.forget_route(routes[0]);
    assert_eq!(starts(&mut matching), []);
    assert!(!matching.is_served(routes[0]) && matching.is_served(routes[1]));
    assert!(matching.pools.values().all(|pool| !pool.routes.contains(&routes[0])));
    matching.learn_route(route_of("send"));
    assert!(matching.is_served(routes[0]) && matching.push(routes[0], normal(2)));
    assert_eq!(starts(&mut matching), [(1, vec![2])]);
}

#[test]
fn a_job_of_an_unknown_route_is_refused() {
    let (mut matching, _) = with_session(&["send"]);
    assert!(!matching.push(route_of("other").id, normal(1)));
}
