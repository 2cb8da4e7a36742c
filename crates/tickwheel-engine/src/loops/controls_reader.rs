//! Reads the stop switch, the paused queues and the paused runs again and again: they may be turned through another
//! server, which cannot tell this one.
//!
//! Nothing starts against them meanwhile, for the store refuses the claims; but without this loop a server that was
//! told of a halt would never hear that it is over.

use std::sync::Arc;
use std::time::Duration;

use tickwheel_core::ports::{ControlStore, StoreResult};

use crate::announcer::Announcer;
use crate::store_watch::StoreWatch;

/// How the loop behaves.
#[derive(Clone, Copy, Debug)]
pub struct ControlsReaderOptions {
    /// How often the store is asked.
    pub interval: Duration,
}

impl Default for ControlsReaderOptions {
    fn default() -> Self {
        Self { interval: Duration::from_secs(1) }
    }
}

/// See the module.
pub struct ControlsReader {
    pub options: ControlsReaderOptions,
    pub store: Arc<dyn ControlStore>,
    pub watch: StoreWatch,
    pub announcer: Announcer,
}

impl ControlsReader {
    /// Reads for ever.
    pub async fn run(self) {
        loop {
            tokio::time::sleep(self.options.interval).await;
            match self.run_once().await {
                Ok(()) => self.watch.succeeded("controls"),
                Err(error) => self.watch.wait_after("controls", &error).await,
            }
        }
    }

    /// Reads them and announces what they say.
    pub async fn run_once(&self) -> StoreResult<()> {
        let controls = self.store.controls().await?;
        self.announcer.controls_read(controls).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tickwheel_core::machine::Event;
    use tickwheel_core::ports::{ControlStore, Controls};
    use tickwheel_testkit::ModelStore;

    use super::*;
    use crate::announcer::tests::listening::{listening, shown};

    #[tokio::test]
    async fn what_another_server_paused_is_heard_of_here() {
        let (store, (announcer, mut listening)) = (Arc::new(ModelStore::new()), listening());
        let reader = ControlsReader {
            options: ControlsReaderOptions::default(),
            store: store.clone(),
            watch: StoreWatch::default(),
            announcer,
        };
        store.set_queue_paused("mail", true).await.unwrap();
        reader.run_once().await.unwrap();
        let controls = Controls { paused_queues: vec!["mail".into()], ..Controls::default() };
        assert_eq!(listening.heard().planner, shown([Event::ControlsRead(controls)]));
    }
}
