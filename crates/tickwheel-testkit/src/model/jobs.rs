//! One job: reading it, and what people do to it.

use std::collections::BTreeSet;

use tickwheel_core::change::{self, Change};
use tickwheel_core::ports::Changed;
use tickwheel_core::{AttemptRecord, Job, JobId, RunId, Timestamp};

use super::Model;

impl Model {
    /// The jobs that exist.
    pub fn get_jobs(&self, ids: &[JobId]) -> Vec<Job> {
        ids.iter().filter_map(|id| self.job(*id)).cloned().collect()
    }

    /// Those of the jobs and runs that have ended.
    pub fn ended_among(&self, mut ids: Vec<JobId>) -> Vec<JobId> {
        let run_ended = |id: JobId| {
            let run = self.runs.get(&RunId::of_task(id)).filter(|_| id.task_index() == 0);
            run.is_some_and(|run| run.progress.status.is_over())
        };
        ids.retain(|id| self.finished.contains_key(id) || run_ended(*id));
        ids
    }

    /// Applies [`tickwheel_core::change::apply`] and files the job where it now belongs.
    pub fn change_job(&mut self, id: JobId, change: &Change, now: Timestamp) -> Changed {
        let Some(mut before) = self.job(id).cloned() else { return Changed::NotFound };
        if matches!(change, Change::Retry { .. }) {
            before.parents = self.parents_of(&before);
        }
        match change::apply(&before, change, now) {
            Err(illegal) => Changed::Illegal(illegal),
            Ok(after) => {
                let after = self.restore(&before, after);
                let moved = BTreeSet::from([id]);
                if before.state().is_terminal() != after.state().is_terminal() {
                    self.propagate_completion(&moved);
                }
                match (&after.spec.position, before.state().is_terminal(), after.state().is_terminal()) {
                    (Some(_), false, true) => self.count_ends(&moved),
                    (Some(position), true, false) => self.go_on(position.run),
                    _ => {}
                }
                Changed::Done(Box::new(after))
            }
        }
    }

    /// Every attempt of a job, the first one first; the one under way included.
    pub fn attempts(&self, id: JobId) -> Option<Vec<AttemptRecord>> {
        let job = self.job(id)?;
        let past = self.past_attempts.range((id, 0)..=(id, u32::MAX)).map(|(_, attempt)| attempt.clone());
        Some(past.chain(job.current_attempt()).collect())
    }

    pub(super) fn restore(&mut self, before: &Job, after: Job) -> Job {
        match (before.state().is_terminal(), after.state().is_terminal()) {
            // The cancel of an ended job was carried out before: its callback is not written again.
            (true, true) => {}
            (false, true) => {
                let callback_url = after.spec.callback_url.clone();
                return self.finish(after, callback_url).clone();
            }
            (true, false) => self.bring_back(before, after.clone()),
            (false, false) => {
                self.live.insert(after.id, after.clone());
            }
        }
        after
    }

    pub(super) fn bring_back(&mut self, ended: &Job, retried: Job) {
        if let Some(last_attempt) = ended.current_attempt() {
            self.remember_attempt(ended.id, last_attempt);
        }
        self.finished.remove(&ended.id);
        self.dead_letters.remove(&ended.id);
        self.live.insert(retried.id, retried);
    }
}
