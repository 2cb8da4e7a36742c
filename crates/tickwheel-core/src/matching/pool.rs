//! The sessions that offer the same: what they can run, who of them waits, and whose turn it was.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::route::Offer;
use crate::id::{RouteId, SessionId};

/// Of so many tenants a pool remembers the last turn. One that is forgotten counts as never served.
const TENANTS_MAX: usize = 10_000;

/// The pool that is asked first is the least special one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PoolId {
    pub label_count: usize,
    pub number: u64,
}

#[derive(Debug)]
pub struct Pool {
    pub offer: Arc<Offer>,
    /// Sessions that offer this, and those that wait here because some of their places are taken.
    pub sessions: usize,
    /// Who waits, the one that waits for longest first.
    pub waiting: BTreeMap<u64, SessionId>,
    /// What it serves, and what of it has jobs.
    pub routes: BTreeSet<RouteId>,
    pub backlogged: BTreeSet<RouteId>,
    last_turns: HashMap<Arc<str>, u64>,
}

impl Pool {
    pub fn new(offer: Arc<Offer>) -> Self {
        Self {
            offer,
            sessions: 0,
            waiting: BTreeMap::new(),
            routes: BTreeSet::new(),
            backlogged: BTreeSet::new(),
            last_turns: HashMap::new(),
        }
    }

    /// Keeps `active` true for this pool.
    pub fn keep_active(&self, id: PoolId, active: &mut BTreeSet<PoolId>) {
        if self.waiting.is_empty() || self.backlogged.is_empty() {
            active.remove(&id);
        } else {
            active.insert(id);
        }
    }

    pub fn last_turn(&self, tenant: &Arc<str>) -> u64 {
        self.last_turns.get(tenant).copied().unwrap_or(0)
    }

    pub fn note_turn(&mut self, tenant: &Arc<str>, turn: u64) {
        if self.routes.len() < 2 {
            // The fair queue of its only route knows whose turn it is.
            return;
        }
        if self.last_turns.len() >= TENANTS_MAX && !self.last_turns.contains_key(tenant) {
            self.last_turns.clear();
        }
        self.last_turns.insert(tenant.clone(), turn);
    }
}
