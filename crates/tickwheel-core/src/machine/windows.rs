//! The windows of every class: how much of the future is known of what could start.
//!
//! What the built-in executors run always has its windows. Jobs for workers have them while a worker is connected that
//! could run them; of all others nothing is read and nothing is held, so they cost nothing.

use std::time::Duration;

use super::window::Window;
use super::{Load, MachineOptions};
use crate::id::{IdMap, IdSet, RouteId};
use crate::job::Priority;
use crate::matching::Class;
use crate::ports::PartitionSet;
use crate::time::Timestamp;

/// The routes of workers share the room of one window; each has at least this much.
const ROUTE_ROOM_MIN: usize = 100;
/// So many windows of routes are swept in one interval at the most: the more there are, the rarer each one's turn.
const SWEEPS_MAX: usize = 200;
/// The windows of routes are looked at so many times in the interval of a sweep.
const CHECKS_PER_SWEEP: u32 = 4;

type ByPriority = [Window; Priority::ALL.len()];

/// The routes that have windows now and had none before, and the other way round.
#[derive(Debug)]
pub(super) struct RouteChanges {
    pub new: IdSet<RouteId>,
    pub gone: IdSet<RouteId>,
}

#[derive(Debug)]
pub(super) struct Windows {
    built_in: ByPriority,
    routes: IdMap<RouteId, ByPriority>,
    /// When all routes are looked at next; what happens to one of them is looked at at once.
    next_check: Timestamp,
    touched: Vec<RouteId>,
}

impl Windows {
    pub fn new(now: Timestamp) -> Self {
        Self { built_in: all_priorities(now), routes: IdMap::default(), next_check: now, touched: Vec::new() }
    }

    /// The window of a class, if what it holds could start.
    pub fn get(&mut self, class: Class, priority: Priority) -> Option<&mut Window> {
        match class {
            Class::BuiltIn => Some(&mut self.built_in[priority as usize]),
            Class::Worker(route) => self.routes.get_mut(&route).map(|own| &mut own[priority as usize]),
        }
    }

    /// How many jobs of a class and priority are held in memory.
    pub fn room(&self, class: Class, options: &MachineOptions) -> usize {
        match class {
            Class::BuiltIn => options.near_jobs_max,
            Class::Worker(_) => {
                let share = options.near_jobs_max / self.routes.len().max(1);
                share.max(ROUTE_ROOM_MIN.min(options.near_jobs_max))
            }
        }
    }

    /// The route is to be looked at: it has more room, or was loaded.
    pub fn touch(&mut self, class: Class) {
        if let Class::Worker(route) = class
            && !self.touched.contains(&route)
        {
            self.touched.push(route);
        }
    }

    /// Somebody can run the jobs of these routes, and nobody those of the others.
    pub fn set_served(&mut self, served: impl Iterator<Item = RouteId>, now: Timestamp) -> RouteChanges {
        let mut before = std::mem::take(&mut self.routes);
        let mut new = IdSet::default();
        for route in served {
            let windows = before.remove(&route).unwrap_or_else(|| {
                new.insert(route);
                all_priorities(now)
            });
            self.routes.insert(route, windows);
        }
        self.touched.extend(&new);
        RouteChanges { new, gone: before.into_keys().collect() }
    }

    pub fn start_over(&mut self, now: Timestamp) {
        self.next_check = now;
        self.all().for_each(|window| window.start_over(now));
    }

    /// The clock was set back.
    pub fn rewind(&mut self, now: Timestamp) {
        self.next_check = now;
        self.all().for_each(|window| window.rewind(now));
    }

    /// When time alone makes a load necessary.
    pub fn next_wake(&self) -> Timestamp {
        // A window that is loading will be heard of; waking up for it before would be in vain.
        let idle = self.built_in.iter().filter(|window| !window.loading);
        let sweep = idle.map(|window| window.next_sweep).min().unwrap_or(Timestamp::MAX);
        if self.routes.is_empty() { sweep } else { sweep.min(self.next_check) }
    }

    /// What is to be loaded now.
    pub fn next_loads(
        &mut self,
        partitions: PartitionSet,
        options: &MachineOptions,
        now: Timestamp,
        mut load: impl FnMut(Load),
    ) {
        let scope = Scope { class: Class::BuiltIn, partitions, room: options.near_jobs_max };
        scope.next_loads(&mut self.built_in, options, now, &mut load);
        if self.routes.is_empty() {
            return;
        }
        let stretched = self.stretched(options);
        let routes: Vec<RouteId> = if now >= self.next_check {
            self.next_check = now + options.sweep_interval / CHECKS_PER_SWEEP;
            self.touched.clear();
            self.routes.keys().copied().collect()
        } else {
            std::mem::take(&mut self.touched)
        };
        for route in routes {
            let class = Class::Worker(route);
            let scope = Scope { class, partitions, room: self.room(class, options) };
            if let Some(windows) = self.routes.get_mut(&route) {
                scope.next_loads(windows, &stretched, now, &mut load);
            }
        }
    }

    /// With many routes each is swept more rarely, so that all of them together cost no more.
    fn stretched(&self, options: &MachineOptions) -> MachineOptions {
        let windows = self.routes.len() * Priority::ALL.len();
        let times = u32::try_from(windows.div_ceil(SWEEPS_MAX)).unwrap_or(u32::MAX);
        let longer = |interval: Duration| interval.saturating_mul(times);
        MachineOptions {
            sweep_interval: longer(options.sweep_interval),
            whole_sweep_interval: longer(options.whole_sweep_interval),
            ..*options
        }
    }

    fn all(&mut self) -> impl Iterator<Item = &mut Window> {
        self.built_in.iter_mut().chain(self.routes.values_mut().flatten())
    }
}

/// Of what to load, and how much of it is held.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scope {
    pub class: Class,
    pub partitions: PartitionSet,
    pub room: usize,
}

impl Scope {
    fn next_loads(
        self,
        windows: &mut ByPriority,
        options: &MachineOptions,
        now: Timestamp,
        load: &mut impl FnMut(Load),
    ) {
        for priority in Priority::ALL {
            windows[priority as usize]
                .next_load(priority, self, options, now)
                .into_iter()
                .for_each(&mut *load);
        }
    }
}

fn all_priorities(now: Timestamp) -> ByPriority {
    std::array::from_fn(|_| Window::new(now))
}
