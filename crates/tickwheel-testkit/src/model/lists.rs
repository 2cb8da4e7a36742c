//! Lists of jobs and of dead letters, the newest first.

use std::cmp::Reverse;

use tickwheel_core::ports::{DeadLetter, DeadLetterCursor, DeadLetterQuery, JobQuery, Page, Projection};
use tickwheel_core::{Job, JobId, JsonText};

use super::Model;

impl Model {
    /// Jobs, live and finished, newest first.
    pub fn list_jobs(&self, query: &JobQuery) -> Page<Job, JobId> {
        let all = self.live.values().chain(self.finished.values());
        let mut found: Vec<&Job> = all.filter(|job| matches(query, job)).collect();
        found.sort_by_key(|job| Reverse(job.id));
        let fit = fitting(&found, query.projection);
        let mut page = page(found, query.limit.min(fit), |job| job.id);
        page.items.iter_mut().for_each(|job| cut(job, query.projection));
        page
    }

    /// Dead letters, the latest first.
    pub fn list_dead_letters(&self, query: &DeadLetterQuery) -> Page<DeadLetter, DeadLetterCursor> {
        let position = |letter: &DeadLetter| (letter.failed_at, letter.job.id);
        let wanted = |letter: &DeadLetter| {
            is_none_or(&query.job_type, |job_type| **job_type == *letter.job.job_type)
                && is_none_or(&query.queue, |queue| **queue == *letter.job.queue)
                && is_none_or(&query.after, |after| position(letter) < (after.failed_at, after.id))
        };
        let all = self.dead_letters.keys().filter_map(|id| self.dead_letter(*id));
        let mut found: Vec<DeadLetter> = all.filter(wanted).collect();
        found.sort_by_key(|letter| Reverse(position(letter)));
        let fit = fitting(&found.iter().map(|letter| &letter.job).collect::<Vec<_>>(), query.projection);
        let mut page = page(found.iter().collect(), query.limit.min(fit), |letter| letter.job.id);
        page.items.iter_mut().for_each(|letter| cut(&mut letter.job, query.projection));
        let next = page.items.last().filter(|_| page.next.is_some());
        let next = next.map(|last| DeadLetterCursor { failed_at: last.failed_at, id: last.job.id });
        Page { next, items: page.items }
    }

    /// One dead letter.
    pub fn dead_letter(&self, id: JobId) -> Option<DeadLetter> {
        let mark = self.dead_letters.get(&id)?;
        let job = self.finished.get(&id)?.clone();
        Some(DeadLetter { job, failed_at: mark.failed_at, reason: mark.reason })
    }

    /// Takes a job off the list of dead letters. `false`: it was not on it.
    pub fn discard_dead_letter(&mut self, id: JobId) -> bool {
        self.dead_letters.remove(&id).is_some()
    }

    /// How many dead letters there are.
    pub fn count_dead_letters(&self) -> u64 {
        self.dead_letters.len() as u64
    }
}

/// How many of the jobs fit into a page: the first, and all before which there is room left.
fn fitting(jobs: &[&Job], projection: Projection) -> usize {
    let mut bytes = 0_usize;
    let has_room = |job: &&&Job| {
        let fits = bytes < projection.bytes_max;
        bytes += job.payload.as_str().len() * usize::from(projection.payload);
        bytes +=
            job.result.as_ref().map_or(0, |result| result.as_str().len()) * usize::from(projection.result);
        bytes += job.spec.metadata.as_str().len() + job.error.as_ref().map_or(0, |error| error.message.len());
        fits
    };
    jobs.iter().take_while(has_room).count()
}

/// Leaves out what is not asked for.
fn cut(job: &mut Job, projection: Projection) {
    if !projection.payload {
        job.payload = JsonText::null().into();
    }
    if !projection.result {
        job.result = None;
    }
}

fn matches(query: &JobQuery, job: &Job) -> bool {
    (query.states.is_empty() || query.states.contains(&job.state()))
        && is_none_or(&query.job_type, |job_type| **job_type == *job.job_type)
        && is_none_or(&query.queue, |queue| **queue == *job.queue)
        && query.tags.iter().all(|tag| job.tags.contains(tag))
        && is_none_or(&query.priority, |priority| *priority == job.priority)
        && is_none_or(&query.tenant, |tenant| **tenant == *job.tenant)
        && is_none_or(&query.schedule_id, |schedule_id| job.schedule_id == Some(*schedule_id))
        && is_none_or(&query.run, |run| {
            job.spec.position.as_ref().is_some_and(|position| position.run == *run)
        })
        && is_none_or(&query.created_from, |from| job.created_at >= *from)
        && is_none_or(&query.created_before, |before| job.created_at < *before)
        && is_none_or(&query.after, |after| job.id < *after)
}

pub(super) fn is_none_or<T>(filter: &Option<T>, matches: impl FnOnce(&T) -> bool) -> bool {
    filter.as_ref().is_none_or(matches)
}

/// The first `limit` of what was found; `next` is the last of them if there are more.
pub(super) fn page<T: Clone, C>(found: Vec<&T>, limit: usize, cursor: impl Fn(&T) -> C) -> Page<T, C> {
    let items: Vec<T> = found.iter().take(limit).map(|item| (*item).clone()).collect();
    let next = items.last().filter(|_| found.len() > limit).map(cursor);
    Page { items, next }
}
