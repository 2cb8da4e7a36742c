//! Has the store cleared of dead rows before they are in anybody's way. A store that needs none of it answers at once.

use std::sync::Arc;
use std::time::Duration;

use tickwheel_core::ports::{ControlStore, StoreResult};

use crate::metrics;
use crate::store_watch::StoreWatch;

/// How the loop behaves.
#[derive(Clone, Copy, Debug)]
pub struct VacuumOptions {
    /// So many dead rows of a table are worth a vacuum. Zero: none ever are.
    pub dead_rows_min: u64,
    /// How often the store is asked whether there is something to clear.
    pub interval: Duration,
    /// After a vacuum, so many times its duration passes until the next one.
    pub pause_factor: u32,
}

impl Default for VacuumOptions {
    fn default() -> Self {
        // A vacuum takes a quarter of the time at the most.
        Self { dead_rows_min: 10_000, interval: Duration::from_secs(2), pause_factor: 3 }
    }
}

/// See the module.
pub struct Vacuum {
    pub options: VacuumOptions,
    pub store: Arc<dyn ControlStore>,
    pub watch: StoreWatch,
}

impl Vacuum {
    /// Clears for ever.
    pub async fn run(self) {
        if self.options.dead_rows_min == 0 {
            return std::future::pending().await;
        }
        let mut pause = self.options.interval;
        loop {
            tokio::time::sleep(pause).await;
            pause = match self.run_once().await {
                Ok(pause) => {
                    self.watch.succeeded("vacuum");
                    pause
                }
                Err(error) => self.watch.failed("vacuum", &error).max(self.options.interval),
            };
        }
    }

    /// Clears what is worth it. Answers how long to wait before the next time.
    pub async fn run_once(&self) -> StoreResult<Duration> {
        let done = self.store.vacuum(self.options.dead_rows_min).await?;
        if done.tables > 0 {
            metrics::vacuumed(done.tables);
            tracing::debug!(tables = done.tables, dead_rows = done.dead_rows, took = ?done.took, "vacuumed");
        }
        Ok(self.options.interval.max(done.took * self.options.pause_factor))
    }
}

#[cfg(test)]
mod tests {
    use tickwheel_testkit::ModelStore;

    use super::*;

    #[tokio::test]
    async fn a_store_without_dead_rows_is_asked_again_after_the_interval() {
        let options = VacuumOptions::default();
        let vacuum = Vacuum { options, store: Arc::new(ModelStore::new()), watch: StoreWatch::default() };
        assert_eq!(vacuum.run_once().await.unwrap(), options.interval);
    }
}
