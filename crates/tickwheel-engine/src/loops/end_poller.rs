//! Finds what other processes have ended, for clients that wait here: asks the store for all of it together, now and
//! then.

use std::sync::Arc;
use std::time::Duration;

use tickwheel_core::ports::{JobStore, StoreResult};

use crate::announcer::Announcer;
use crate::waiters::Waiters;

/// How the loop behaves.
#[derive(Clone, Copy, Debug)]
pub struct EndPollerOptions {
    /// How often the store is asked.
    pub interval: Duration,
    /// So many jobs are asked for at once.
    pub batch_len_max: usize,
}

impl Default for EndPollerOptions {
    fn default() -> Self {
        Self { interval: Duration::from_secs(2), batch_len_max: 1_000 }
    }
}

/// See the module.
pub struct EndPoller {
    pub options: EndPollerOptions,
    pub store: Arc<dyn JobStore>,
    pub waiters: Waiters,
    pub announcer: Announcer,
}

impl EndPoller {
    /// Asks for ever.
    pub async fn run(self) {
        loop {
            tokio::time::sleep(self.options.interval).await;
            if let Err(error) = self.run_once().await {
                // Nobody misses anything: the next round asks again.
                tracing::debug!(%error, "could not read what clients wait for");
            }
        }
    }

    /// Announces which of the awaited jobs have ended.
    pub async fn run_once(&self) -> StoreResult<()> {
        for batch in self.waiters.awaited().chunks(self.options.batch_len_max) {
            let ended = self.store.ended_among(batch.to_vec()).await?;
            self.announcer.jobs_ended_elsewhere(ended);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tickwheel_core::change::Change;
    use tickwheel_testkit::ModelStore;
    use tickwheel_testkit::fixtures::{at, job_numbered};

    use super::*;
    use crate::announcer::tests::listening::listening;

    #[tokio::test]
    async fn what_another_process_ended_is_found_however_many_are_awaited() {
        let (store, (announcer, mut listening)) = (Arc::new(ModelStore::new()), listening());
        let poller = EndPoller {
            options: EndPollerOptions { batch_len_max: 2, ..EndPollerOptions::default() },
            store: store.clone(),
            waiters: listening.waiters.clone(),
            announcer,
        };
        let jobs: Vec<_> = (1..=5).map(|number| job_numbered(number).build_new()).collect();
        let ids: Vec<_> = jobs.iter().map(|new| new.job.id).collect();
        listening.wait_for(ids.iter().copied());
        store.submit_jobs(jobs).await.unwrap();
        poller.run_once().await.unwrap();
        assert_eq!(listening.heard().clients, []);
        store.change_job(ids[4], Change::Cancel, at(1)).await.unwrap();
        poller.run_once().await.unwrap();
        assert_eq!(listening.heard().clients, [ids[4]]);
    }
}
