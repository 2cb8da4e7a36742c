//! Reads the stop switch, the paused queues and the paused runs again and again: they may be turned through another
//! server, which cannot tell this one.
//!
//! Nothing starts against them meanwhile, for the store refuses the claims; but without this loop a server that was told of a halt would never hear that it
//! is over.

use std::sync::Arc;
use std::time::Duration;

use tickwheel_core::ports::Store;

use crate::announcer::Announcer;
use crate::store_watch::StoreWatch;

const INTERVAL: Duration = Duration::from_secs(1);

/// See the module.
pub struct ControlsReader {
    pub store: Arc<dyn Store>,
    pub watch: StoreWatch,
    pub announcer: Announcer,
}

impl ControlsReader {
    /// Reads for ever.
    pub async fn run(self) {
        loop {
            tokio::time::sleep(INTERVAL).await;
            match self.store.controls().await {
                Ok(controls) => {
                    self.watch.succeeded("controls");
                    self.announcer.controls_read(controls).await;
                }
                Err(error) => self.watch.wait_after("controls", &error).await,
            }
        }
    }
}
