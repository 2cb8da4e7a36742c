//! Workers, as the machine knows them: what they can run, and who of them waits for work.
//!
//! A route that nobody serves has no windows: its jobs are neither read nor held. When the first worker comes that
//! serves it, its jobs are read from the store; when the last one goes, they are forgotten.

use std::sync::Arc;

use super::windows::RouteChanges;
use super::{ClaimRequest, Effect, Machine, Runner};
use crate::id::{IdSet, RouteId, SessionId};
use crate::matching::{Class, Offer, Route};
use crate::ports::DueJob;
use crate::time::Timestamp;

impl Machine {
    /// How many jobs for workers are due and could start if somebody had a place for them.
    pub fn waiting_for_workers(&self) -> usize {
        let workers = &self.backlog.workers;
        workers.served().filter_map(|route| workers.queue(route)).map(|queue| queue.len()).sum()
    }

    pub(super) fn learn_routes(&mut self, routes: Vec<Arc<Route>>, now: Timestamp) {
        routes.into_iter().for_each(|route| self.backlog.workers.learn_route(route));
        self.update_served_routes(now);
    }

    pub(super) fn forget_routes(&mut self, routes: &IdSet<RouteId>, now: Timestamp) {
        // What is still held of them ended meanwhile.
        self.forget_all(|job| is_among(routes, job));
        routes.iter().for_each(|route| self.backlog.workers.forget_route(*route));
        self.update_served_routes(now);
    }

    pub(super) fn open_session(&mut self, session: SessionId, offer: Arc<Offer>, now: Timestamp) {
        self.backlog.workers.open_session(session, offer);
        self.update_served_routes(now);
    }

    pub(super) fn close_session(&mut self, session: SessionId, now: Timestamp) {
        self.backlog.workers.close_session(session);
        self.update_served_routes(now);
    }

    /// Starts to read what can be run now, and forgets what nobody can run any more.
    fn update_served_routes(&mut self, now: Timestamp) {
        let RouteChanges { new, gone } = self.windows.set_served(self.backlog.workers.served(), now);
        if !gone.is_empty() {
            self.forget_all(|job| is_among(&gone, job));
        }
        if !new.is_empty() {
            // Claims may still be under way for workers that went.
            let held = self.entries.values().filter(|entry| is_among(&new, &entry.job));
            let held: Vec<DueJob> = held.map(|entry| entry.job.clone()).collect();
            held.iter().for_each(|job| self.count_held(job, 1));
        }
    }

    /// Gives every waiting worker what it can run.
    pub(super) fn ask_for_worker_claims(&mut self, effects: &mut Vec<Effect>) {
        if self.halted || self.closed {
            return;
        }
        while let Some((session, jobs)) = self.backlog.workers.next_start() {
            let jobs = jobs.into_iter().map(|job| self.start_claim(job)).collect();
            effects.push(Effect::Claim(ClaimRequest { runner: Runner::Worker(session), jobs }));
        }
    }
}

fn is_among(routes: &IdSet<RouteId>, job: &DueJob) -> bool {
    matches!(job.class, Class::Worker(route) if routes.contains(&route))
}
