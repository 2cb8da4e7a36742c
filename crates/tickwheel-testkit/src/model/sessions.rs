//! Who is alive, and which attempts nobody takes care of any more.

use tickwheel_core::ports::{FindAbandoned, Session, StoreError, StoreResult};
use tickwheel_core::{Job, SessionId, State, Timestamp};

use super::Model;

impl Model {
    /// Makes a session known; refused if it is known already.
    pub fn open_session(&mut self, session: Session) -> StoreResult<()> {
        if self.sessions.contains_key(&session.id) {
            return Err(StoreError::Aborted(format!("there is a session {} already", session.id)));
        }
        self.sessions.insert(session.id, session);
        Ok(())
    }

    /// Prolongs a session's lease. `false`: it has ended.
    pub fn renew_session(&mut self, id: SessionId, expires_at: Timestamp) -> bool {
        let session = self.sessions.get_mut(&id);
        session.map(|session| session.expires_at = expires_at).is_some()
    }

    /// Ends a session.
    pub fn end_session(&mut self, id: SessionId) {
        self.sessions.remove(&id);
        self.killed.remove(&id);
    }

    /// From now on the session's process is known to be dead: the next [`expire_sessions`](Self::expire_sessions) ends
    /// it before its lease is over.
    pub fn kill_session(&mut self, id: SessionId) {
        self.killed.insert(id);
    }

    /// Ends every session whose lease is over or whose process is known to be dead, except `own`; says which.
    pub fn expire_sessions(&mut self, own: SessionId, now: Timestamp) -> Vec<SessionId> {
        let is_over = |session: &&Session| {
            session.id != own && (session.expires_at <= now || self.killed.contains(&session.id))
        };
        let mut over: Vec<SessionId> =
            self.sessions.values().filter(is_over).map(|session| session.id).collect();
        over.iter().for_each(|id| self.end_session(*id));
        over.extend(self.expire_workers(now));
        over
    }

    /// Running jobs whose session has ended, or whose deadline passed more than the grace ago.
    pub fn find_abandoned(&self, find: FindAbandoned) -> Vec<Job> {
        let is_abandoned = |job: &&Job| {
            let orphaned = job.session.is_some_and(|session| !self.is_open(session));
            let overdue = job.deadline.is_some_and(|deadline| deadline + find.grace < find.now);
            job.state() == State::Running && (orphaned || overdue)
        };
        self.live.values().filter(is_abandoned).take(find.limit).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_known_to_be_dead_is_ended_before_its_lease_is_over() {
        let session = |number| crate::fixtures::session(number, Timestamp::MAX);
        let mut model = Model::new();
        for number in 1..=3 {
            model.open_session(session(number)).unwrap();
        }
        model.kill_session(session(2).id);
        assert_eq!(model.expire_sessions(session(1).id, Timestamp::EPOCH), [session(2).id]);
        assert!(!model.renew_session(session(2).id, Timestamp::MAX));
        assert!(model.renew_session(session(3).id, Timestamp::MAX), "alive and not over");
    }
}
