//! The sessions of workers, and the routes of jobs for them.

use std::collections::{BTreeMap, BTreeSet};

use tickwheel_core::matching::Route;
use tickwheel_core::ports::{HeldAttempt, RoutesLookedAt, WorkerRenewal};
use tickwheel_core::token::AttemptRef;
use tickwheel_core::worker::{NewWorker, WorkerSession};
use tickwheel_core::{Job, JobId, RouteId, SessionId, State, Timestamp};
use uuid::Uuid;

use super::Model;

/// The sessions of workers that have not ended, and by which instance each is known.
#[derive(Clone, Debug, Default)]
pub(super) struct WorkerSessions {
    open: BTreeMap<SessionId, WorkerSession>,
    instances: BTreeMap<Uuid, SessionId>,
    /// The nodes that claimed for them.
    claimed_by: BTreeMap<JobId, SessionId>,
    /// Routes of ended jobs that are gone.
    removed_routes: BTreeSet<RouteId>,
}

impl WorkerSessions {
    pub fn contains(&self, id: SessionId) -> bool {
        self.open.contains_key(&id)
    }

    fn end(&mut self, id: SessionId) -> bool {
        self.instances.retain(|_, session| *session != id);
        self.open.remove(&id).is_some()
    }
}

impl Model {
    /// Whether a session, of a node or a worker, has not ended.
    pub fn is_open(&self, id: SessionId) -> bool {
        self.sessions.contains_key(&id) || self.workers.contains(id)
    }

    /// Opens a worker's session, or renews the one that it has.
    pub fn open_worker(&mut self, worker: NewWorker, now: Timestamp) -> WorkerSession {
        let known = worker.instance.and_then(|instance| self.workers.instances.get(&instance).copied());
        let id = known.unwrap_or(worker.id);
        if let Some(instance) = worker.instance {
            self.workers.instances.insert(instance, id);
        }
        let before = self.workers.open.get(&id);
        let session = WorkerSession {
            id,
            opened_at: before.map_or(now, |session| session.opened_at),
            expires_at: now + worker.profile.lease(),
            draining: before.is_some_and(|session| session.draining),
            profile: worker.profile,
        };
        self.workers.open.insert(id, session.clone());
        session
    }

    /// Prolongs a worker's session. `None`: it has ended.
    pub fn renew_worker(&mut self, id: SessionId, now: Timestamp) -> Option<WorkerRenewal> {
        let session = self.workers.open.get_mut(&id)?;
        session.expires_at = now + session.profile.lease();
        let session = session.clone();
        let cancel = self.running_under(id).filter(|job| job.cancel_requested).map(attempt_of).collect();
        Some(WorkerRenewal { session, cancel })
    }

    /// A worker's session.
    pub fn get_worker(&self, id: SessionId) -> Option<WorkerSession> {
        self.workers.open.get(&id).cloned()
    }

    /// The sessions of workers after this one.
    pub fn list_workers(&self, after: Option<SessionId>, limit: usize) -> Vec<WorkerSession> {
        let later = self.workers.open.values().filter(|session| Some(session.id) > after);
        later.take(limit).cloned().collect()
    }

    /// Wants a worker to take nothing new.
    pub fn set_worker_draining(&mut self, id: SessionId, draining: bool) -> bool {
        self.workers.open.get_mut(&id).map(|session| session.draining = draining).is_some()
    }

    /// Ends a worker's session.
    pub fn end_worker(&mut self, id: SessionId) -> bool {
        self.workers.end(id)
    }

    /// Every worker gets a whole lease.
    pub fn extend_workers(&mut self, now: Timestamp) {
        for session in self.workers.open.values_mut() {
            session.expires_at = session.expires_at.max(now + session.profile.lease());
        }
    }

    /// Ends the sessions of workers whose lease is over.
    pub(super) fn expire_workers(&mut self, now: Timestamp) -> Vec<SessionId> {
        let is_over = |session: &&WorkerSession| session.expires_at <= now;
        let over: Vec<SessionId> =
            self.workers.open.values().filter(is_over).map(|session| session.id).collect();
        for id in &over {
            self.workers.end(*id);
        }
        over
    }

    /// What runs under a worker's session.
    pub fn held_by(&self, id: SessionId, limit: usize) -> Vec<HeldAttempt> {
        let held = |job: &Job| HeldAttempt {
            attempt: attempt_of(job),
            job_type: job.job_type.to_string(),
            started_at: job.started_at,
            deadline: job.deadline,
            cancel_requested: job.cancel_requested,
        };
        self.running_under(id).take(limit).map(held).collect()
    }

    /// Notes which node claims a job for a worker.
    pub(super) fn note_claimant(&mut self, id: JobId, node: SessionId) {
        self.workers.claimed_by.insert(id, node);
    }

    /// What a node claimed for workers of these jobs, and runs.
    pub fn claimed_by(&self, node: SessionId, jobs: &[JobId]) -> Vec<Job> {
        let is_its = |job: &&Job| {
            job.state() == State::Running
                && job.session.is_some()
                && self.workers.claimed_by.get(&job.id) == Some(&node)
        };
        jobs.iter().filter_map(|id| self.live.get(id)).filter(is_its).cloned().collect()
    }

    /// How much runs under each of these sessions.
    pub fn count_held(&self, ids: &[SessionId]) -> Vec<u64> {
        ids.iter().map(|id| self.running_under(*id).count() as u64).collect()
    }

    /// How many jobs of these routes are due and wait.
    pub fn count_due_routes(&self, routes: &[RouteId], now: Timestamp, limit: usize) -> u64 {
        let is_due = |job: &&Job| {
            let route = Route::of(job).map(|route| route.id);
            job.state() == State::Scheduled
                && job.due_at <= now
                && route.is_some_and(|route| routes.contains(&route))
        };
        self.live.values().filter(is_due).take(limit).count() as u64
    }

    /// The routes of all live jobs for workers, and those of ended ones that nobody removed.
    pub fn routes(&self) -> Vec<Route> {
        let ended = routes_of(self.finished.values());
        let kept = ended.into_iter().filter(|(id, _)| !self.workers.removed_routes.contains(id));
        let mut routes: BTreeMap<RouteId, Route> = kept.collect();
        routes.extend(routes_of(self.live.values()));
        routes.into_values().collect()
    }

    /// Removes routes that no live job has.
    pub fn remove_unused_routes(&mut self, after: Option<RouteId>, limit: usize) -> RoutesLookedAt {
        let live = routes_of(self.live.values());
        self.workers.removed_routes.retain(|id| !live.contains_key(id));
        let mut looked_at: Vec<RouteId> = self.routes().into_iter().map(|route| route.id).collect();
        looked_at.retain(|id| after.is_none_or(|after| *id > after));
        looked_at.truncate(limit);
        let next = looked_at.last().copied().filter(|_| looked_at.len() == limit);
        let unused = looked_at.iter().filter(|id| !live.contains_key(id));
        let removed = unused.filter(|id| self.workers.removed_routes.insert(**id)).count();
        RoutesLookedAt { removed, next }
    }

    fn running_under(&self, id: SessionId) -> impl Iterator<Item = &Job> {
        self.live.values().filter(move |job| job.state() == State::Running && job.session == Some(id))
    }
}

const fn attempt_of(job: &Job) -> AttemptRef {
    AttemptRef { job_id: job.id, attempt: job.attempt }
}

fn routes_of<'j>(jobs: impl Iterator<Item = &'j Job>) -> BTreeMap<RouteId, Route> {
    jobs.filter_map(Route::of).map(|route| (route.id, route)).collect()
}
