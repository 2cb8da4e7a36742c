//! The connections that are open, so that one of them can be asked to leave.
//!
//! Touched when a connection comes and goes, not with its requests: how long each has been silent it notes for itself,
//! and all are looked at only when there is no room.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Progress;
use crate::metrics::Present;

/// All open connections. Clones are the same list.
#[derive(Clone, Default)]
pub struct Open(Arc<Mutex<List>>);

#[derive(Default)]
struct List {
    next: u64,
    connections: HashMap<u64, Arc<Progress>>,
}

/// A connection's place in the list.
pub struct Entry {
    open: Open,
    number: u64,
    _counted: Present,
}

impl Open {
    /// Adds a connection, until the entry is dropped.
    pub(super) fn enter(&self, progress: Arc<Progress>) -> Entry {
        let mut list = self.lock();
        let number = list.next;
        list.next += 1;
        list.connections.insert(number, progress);
        drop(list);
        Entry { open: self.clone(), number, _counted: Present::connection() }
    }

    /// Asks the connection that has been silent for longest to leave; `false`: none is silent.
    pub fn close_idlest(&self) -> bool {
        let mut list = self.lock();
        let idle = list.connections.iter().filter_map(|(number, one)| Some((one.idle_since()?, *number)));
        let Some((_, idlest)) = idle.min() else { return false };
        // Off the list at once: the next one who needs room asks another.
        if let Some(progress) = list.connections.remove(&idlest) {
            progress.leave.notify_one();
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, List> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.open.lock().connections.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::super::Stage;
    use super::*;

    #[test]
    fn the_one_that_was_silent_for_longest_leaves_and_nobody_who_is_served() {
        let open = Open::default();
        let connections: Vec<_> = (0..3).map(|_| Arc::new(Progress::default())).collect();
        let _entries: Vec<_> = connections.iter().map(|one| open.enter(one.clone())).collect();
        for (one, since) in connections.iter().zip([30, 10, 20]) {
            one.idle_since.store(since, std::sync::atomic::Ordering::Relaxed);
        }
        connections[1].enter(Stage::Answering);
        let has_to_leave = |number: usize| connections[number].sent_away().now_or_never().is_some();
        assert!(open.close_idlest());
        assert!(has_to_leave(2) && !has_to_leave(0) && !has_to_leave(1));
        assert!(open.close_idlest());
        assert!(has_to_leave(0) && !has_to_leave(1));
        assert!(!open.close_idlest());
    }
}
