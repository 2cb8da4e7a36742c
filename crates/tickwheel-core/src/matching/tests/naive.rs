//! Matching judged by one that scans: after every step all jobs are compared with all sessions.

use std::collections::{BTreeMap, HashSet};

use proptest::prelude::*;

use super::*;

const TYPES: [&str; 3] = ["send", "render", "index"];
const TENANTS: [&str; 3] = ["a", "b", "c"];

#[derive(Clone, Debug)]
enum Step {
    Learn { route: usize },
    Open { session: u128, offer: usize },
    Close { session: u128 },
    Wait { session: u128, jobs_max: usize, full_type: Option<usize>, places: usize },
    Push { route: usize, tenant: usize, priority: usize, due: i64 },
    Remove { pick: usize },
}

fn step() -> impl Strategy<Value = Step> {
    let open = (0u128..6, 0usize..6).prop_map(|(session, offer)| Step::Open { session, offer });
    let wait = (0u128..6, 0usize..5, prop::option::of(0usize..3), 0usize..3).prop_map(
        |(session, jobs_max, full_type, places)| Step::Wait { session, jobs_max, full_type, places },
    );
    let push = (0usize..6, 0usize..3, 0usize..2, 0i64..20)
        .prop_map(|(route, tenant, priority, due)| Step::Push { route, tenant, priority, due });
    prop_oneof![
        1 => (0usize..6).prop_map(|route| Step::Learn { route }),
        2 => open,
        1 => (0u128..6).prop_map(|session| Step::Close { session }),
        8 => wait,
        16 => push,
        2 => any::<usize>().prop_map(|pick| Step::Remove { pick }),
    ]
}

/// Three types, each with and without a requirement.
fn route(index: usize) -> Arc<Route> {
    let requires = if index < 3 { Labels::new() } else { gpu() };
    Arc::new(Route::new("default".into(), Skill::Handler(TYPES[index % 3].into()), requires))
}

fn offer_numbered(index: usize) -> Arc<Offer> {
    let types: &[&str] = [&TYPES[..1], &TYPES[..2], &TYPES[..]][index % 3];
    offer(types, if index < 3 { Labels::new() } else { gpu() })
}

/// A session as the naive one sees it.
#[derive(Clone, Debug)]
struct Seen {
    offer: Arc<Offer>,
    /// What it waits for, with the types it has places for, and since which step.
    waiting: Option<(Demand, Arc<Offer>, usize)>,
}

/// The order within one route and priority, as the fair queue promises it.
#[derive(Clone, Debug, Default)]
struct Shares {
    passes: HashMap<Arc<str>, u64>,
    virtual_time: u64,
}

#[derive(Default)]
struct Naive {
    routes: Vec<Arc<Route>>,
    sessions: BTreeMap<u128, Seen>,
    jobs: Vec<(RouteId, DueJob)>,
    shares: HashMap<(RouteId, Priority), Shares>,
    turns: Vec<(Arc<Offer>, Arc<str>, usize)>,
    now: usize,
}

impl Naive {
    fn knows(&self, id: RouteId) -> bool {
        self.routes.iter().any(|route| route.id == id)
    }

    fn can_take(&self, offer: &Offer, id: RouteId) -> bool {
        self.routes.iter().any(|route| route.id == id && offer.serves(route))
    }

    fn push(&mut self, route: RouteId, job: DueJob) {
        let is_first = !self.jobs.iter().any(|(other, waiting)| {
            *other == route && waiting.priority == job.priority && waiting.tenant == job.tenant
        });
        let shares = self.shares.entry((route, job.priority)).or_default();
        let pass = shares.passes.entry(job.tenant.clone()).or_default();
        if is_first {
            *pass = (*pass).max(shares.virtual_time);
        }
        self.jobs.push((route, job));
    }

    /// The first job of a route.
    fn first(&self, route: RouteId) -> Option<&DueJob> {
        let rank = |job: &DueJob| {
            let pass = self.shares[&(route, job.priority)].passes[&job.tenant];
            (job.priority, pass, job.tenant.clone(), job.cursor())
        };
        self.jobs.iter().filter(|(of, _)| *of == route).map(|(_, job)| job).min_by_key(|job| rank(job))
    }

    /// The job that a session with these places gets next.
    fn next_for(&self, offer: &Arc<Offer>, places: &HashMap<Arc<str>, usize>) -> Option<(RouteId, DueJob)> {
        let last_turn = |tenant: &Arc<str>| {
            let own = self.turns.iter().filter(|(of, name, _)| of == offer && name == tenant);
            own.map(|(.., turn)| *turn).max().unwrap_or(0)
        };
        let is_full = |job_type: &Arc<str>| places.get(job_type) == Some(&0);
        let can_take = |route: &&Arc<Route>| offer.serves(route) && !route.job_type().is_some_and(is_full);
        let firsts =
            self.routes.iter().filter(can_take).filter_map(|route| Some((route.id, self.first(route.id)?)));
        let rank = |(id, job): &(RouteId, &DueJob)| (job.priority, last_turn(&job.tenant), job.cursor(), *id);
        firsts.min_by_key(rank).map(|(id, job)| (id, job.clone()))
    }

    fn take(&mut self, offer: &Arc<Offer>, route: RouteId, job: &DueJob) {
        self.now += 1;
        let shares = self.shares.get_mut(&(route, job.priority)).unwrap();
        let pass = shares.passes.get_mut(&job.tenant).unwrap();
        shares.virtual_time = *pass;
        *pass += 1 << 20;
        self.jobs.retain(|(_, waiting)| waiting.id != job.id);
        if self.routes.iter().filter(|route| offer.serves(route)).count() >= 2 {
            self.turns.push((offer.clone(), job.tenant.clone(), self.now));
        }
    }

    /// A pool that nobody is in remembers nothing.
    fn forget_turns(&mut self) {
        let sessions = &self.sessions;
        self.turns.retain(|(offer, ..)| {
            sessions.values().any(|seen| {
                seen.offer == *offer
                    || seen.waiting.as_ref().is_some_and(|(_, effective, _)| effective == offer)
            })
        });
    }

    /// Whether this start is the one that comes next, by scanning everything.
    fn check_start(&mut self, id: u128, jobs: &[DueJob]) -> Result<(), TestCaseError> {
        let (demand, effective, since) = self.sessions[&id].waiting.clone().unwrap();
        prop_assert!(!jobs.is_empty() && jobs.len() <= demand.jobs_max);
        for seen in self.sessions.values() {
            let Some((_, other, other_since)) = &seen.waiting else { continue };
            let could = self.jobs.iter().any(|(route, _)| self.can_take(other, *route));
            prop_assert!(
                !could || effective.label_count() <= other.label_count(),
                "a less special one waits"
            );
            prop_assert!(*other != effective || since <= *other_since, "somebody waits for longer");
        }
        let mut places = demand.by_type.clone();
        for job in jobs {
            let (route, expected) = self.next_for(&effective, &places).unwrap();
            prop_assert_eq!(job, &expected);
            self.take(&effective, route, job);
            let job_type = self.routes.iter().find(|known| known.id == route).unwrap().job_type();
            if let Some(left) = job_type.and_then(|job_type| places.get_mut(job_type)) {
                *left -= 1;
            }
        }
        if jobs.len() < demand.jobs_max {
            prop_assert!(self.next_for(&effective, &places).is_none(), "it could have got more");
        }
        self.sessions.get_mut(&id).unwrap().waiting = None;
        self.forget_turns();
        Ok(())
    }

    /// Nobody who waits could take anything that waits.
    fn check_rest(&self) -> Result<(), TestCaseError> {
        for seen in self.sessions.values() {
            let Some((_, effective, _)) = &seen.waiting else { continue };
            prop_assert!(!self.jobs.iter().any(|(route, _)| self.can_take(effective, *route)));
        }
        Ok(())
    }
}

fn apply(step: Step, number: usize, matching: &mut Matching, naive: &mut Naive) {
    naive.now += 1;
    match step {
        Step::Learn { route: index } => {
            matching.learn_route(route(index));
            if !naive.knows(route(index).id) {
                naive.routes.push(route(index));
            }
        }
        Step::Open { session: id, offer } => {
            let offer = offer_numbered(offer);
            matching.open_session(session(id), offer.clone());
            naive.sessions.remove(&id);
            naive.forget_turns();
            naive.sessions.insert(id, Seen { offer, waiting: None });
        }
        Step::Close { session: id } => {
            matching.close_session(session(id));
            naive.sessions.remove(&id);
        }
        Step::Wait { session: id, jobs_max, full_type, places } => {
            let by_type: HashMap<Arc<str>, usize> =
                full_type.map(|index| (TYPES[index].into(), places)).into_iter().collect();
            let demand = Demand { jobs_max, by_type };
            matching.wait(session(id), demand.clone());
            if let Some(seen) = naive.sessions.get_mut(&id) {
                let effective = seen.offer.without_types(|name| demand.by_type.get(name) == Some(&0));
                seen.waiting = (jobs_max > 0).then(|| (demand, Arc::new(effective), naive.now));
            }
        }
        Step::Push { route: index, tenant, priority, due } => {
            let job = job(number as u128, TENANTS[tenant], Priority::ALL[priority], due);
            let id = route(index).id;
            assert_eq!(matching.push(id, job.clone()), naive.knows(id));
            if naive.knows(id) {
                naive.push(id, job);
            }
        }
        Step::Remove { pick } => {
            if let Some(index) = pick.checked_rem(naive.jobs.len()) {
                let (route, job) = naive.jobs.remove(index);
                assert_eq!(matching.remove(route, &job), Some(job));
            }
        }
    }
    naive.forget_turns();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Whoever comes, waits and goes, whatever arrives: each start is the one that a scan of everything finds.
    #[test]
    fn every_start_is_the_one_that_a_scan_would_find(steps in prop::collection::vec(step(), 1..120)) {
        let (mut matching, mut naive) = (Matching::default(), Naive::default());
        let mut started = HashSet::new();
        for (number, step) in steps.into_iter().enumerate() {
            apply(step, number, &mut matching, &mut naive);
            while let Some((id, jobs)) = matching.next_start() {
                naive.check_start(id.as_uuid().as_u128(), &jobs)?;
                prop_assert!(jobs.iter().all(|job| started.insert(job.id)), "started twice");
            }
            naive.check_rest()?;
            let waiting: usize = matching.routes.values().map(|line| line.queue.len()).sum();
            prop_assert_eq!(waiting, naive.jobs.len());
        }
    }
}
