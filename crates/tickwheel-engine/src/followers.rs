//! Clients that read the log of a job while it grows. They hear of lines that this process writes; for those of others
//! they ask the store.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tickwheel_core::JobId;
use tickwheel_core::ports::LogFollower;
use tokio::sync::Notify;

/// So many follow at the same time.
const FOLLOWERS_MAX: usize = 1_000;

/// Who follows which job. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Followers(Arc<Mutex<Shared>>);

#[derive(Debug, Default)]
struct Shared {
    by_job: HashMap<JobId, Vec<Arc<Notify>>>,
    count: usize,
}

/// One of them, until it is dropped.
struct Follower {
    followers: Followers,
    job_id: JobId,
    news: Arc<Notify>,
}

impl Followers {
    /// From now on. `None`: there are too many.
    pub fn follow(&self, job_id: JobId) -> Option<Box<dyn LogFollower>> {
        let news = Arc::new(Notify::new());
        let mut shared = self.lock();
        if shared.count >= FOLLOWERS_MAX {
            return None;
        }
        shared.count += 1;
        shared.by_job.entry(job_id).or_default().push(news.clone());
        drop(shared);
        Some(Box::new(Follower { followers: self.clone(), job_id, news }))
    }

    /// Tells those who follow these jobs.
    pub fn tell(&self, jobs: impl IntoIterator<Item = JobId>) {
        let shared = self.lock();
        if shared.count == 0 {
            return;
        }
        for news in jobs.into_iter().filter_map(|job_id| shared.by_job.get(&job_id)).flatten() {
            // Kept for a follower that does not wait at the moment.
            news.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl LogFollower for Follower {
    async fn new_lines(&self) {
        self.news.notified().await;
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let mut shared = self.followers.lock();
        shared.count -= 1;
        let Some(of_job) = shared.by_job.get_mut(&self.job_id) else { return };
        of_job.retain(|news| !Arc::ptr_eq(news, &self.news));
        if of_job.is_empty() {
            shared.by_job.remove(&self.job_id);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn id(number: u128) -> JobId {
        JobId::from_uuid(uuid::Uuid::from_u128(number))
    }

    #[test]
    fn who_follows_a_job_hears_of_it_even_if_it_did_not_wait() {
        let followers = Followers::default();
        let (first, second, other) = (
            followers.follow(id(1)).unwrap(),
            followers.follow(id(1)).unwrap(),
            followers.follow(id(2)).unwrap(),
        );
        followers.tell([id(1)]);
        assert!(first.new_lines().now_or_never().is_some());
        assert!(first.new_lines().now_or_never().is_none(), "once");
        assert!(second.new_lines().now_or_never().is_some());
        assert!(other.new_lines().now_or_never().is_none());
    }

    #[test]
    fn there_are_only_so_many_and_who_leaves_makes_room() {
        let followers = Followers::default();
        let mut all: Vec<_> = (0..FOLLOWERS_MAX).map(|_| followers.follow(id(1)).unwrap()).collect();
        assert!(followers.follow(id(2)).is_none());
        all.pop();
        assert!(followers.follow(id(2)).is_some());
        all.clear();
        assert!(followers.lock().by_job.is_empty());
    }
}
