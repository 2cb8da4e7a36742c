//! The way of a node to the store: requests take their time, and some of them or their answers never arrive, arrive
//! late, or twice.

use std::time::Duration;

use rand::RngExt;
use tickwheel_core::ports::{StoreError, StoreResult};
use tickwheel_testkit::ModelStore;
use tickwheel_testkit::model::Verb;
// sleep: in simulated time, which passes when nobody has anything to do
use tokio::time::sleep;

use crate::cluster::{Cluster, Happening, SharedCluster};
use crate::injected::{FaultKind, is_checked, is_protocol};

/// After this time nobody waits any longer for a store that cannot be reached.
const PATIENCE: Duration = Duration::from_millis(300);
/// So much later a request may arrive, in milliseconds.
const LATE_MS_MAX: u64 = 2_000;

/// The store as one node sees it.
#[derive(Clone)]
pub struct NodeStore {
    pub node: usize,
    pub cluster: SharedCluster,
}

impl NodeStore {
    /// Asks for something that changes nothing.
    pub async fn read<T>(
        &self,
        verb: Verb,
        look: impl FnOnce(&ModelStore) -> StoreResult<T> + Send,
    ) -> StoreResult<T> {
        self.request_travels(verb).await?;
        let model = self.cluster.lock().model.clone();
        let answer = look(&model)?;
        self.answer_travels(verb, false).await?;
        Ok(answer)
    }

    /// Asks for a change.
    pub async fn write<T>(
        &self,
        verb: Verb,
        deed: impl FnOnce(&ModelStore) -> StoreResult<T> + Send,
    ) -> StoreResult<T> {
        self.request_travels(verb).await?;
        let answer_lost = self.goes_wrong(FaultKind::AnswerLost(verb));
        let model = self.cluster.lock().model.clone();
        let answer = deed(&model)?;
        self.answer_travels(verb, answer_lost).await?;
        Ok(answer)
    }

    /// Asks for a change that is checked when it is made, and that may be made late or twice.
    pub async fn commit<T>(
        &self,
        verb: Verb,
        deed: impl Fn(&mut Cluster) -> StoreResult<T> + Clone + Send + Sync + 'static,
    ) -> StoreResult<T> {
        self.request_travels(verb).await?;
        if is_checked(verb) && self.goes_wrong(FaultKind::RequestLate(verb)) {
            self.arrives_later(deed);
            return Err(unknown(verb));
        }
        let answer_lost = self.goes_wrong(FaultKind::AnswerLost(verb));
        if is_checked(verb) && self.goes_wrong(FaultKind::RequestDoubled(verb)) {
            // Somewhere on the way it was sent again. Nobody waits for the second answer.
            self.arrives_later(deed.clone());
        }
        let answer = deed(&mut self.cluster.lock())?;
        self.answer_travels(verb, answer_lost).await?;
        Ok(answer)
    }

    fn goes_wrong(&self, fault: FaultKind) -> bool {
        self.cluster.lock().goes_wrong(fault, percent_of(fault.verb()))
    }

    fn arrives_later<T>(&self, deed: impl Fn(&mut Cluster) -> StoreResult<T> + Send + 'static) {
        let mut cluster = self.cluster.lock();
        let after = cluster.rng.random_range(1..LATE_MS_MAX);
        cluster.at(after, Happening::LateWrite(Box::new(move |cluster| drop(deed(cluster)))));
    }

    async fn request_travels(&self, verb: Verb) -> StoreResult<()> {
        let delay = self.cluster.lock().some_delay();
        sleep(delay).await;
        self.is_reached(verb).await?;
        if self.goes_wrong(FaultKind::RequestLost(verb)) {
            return Err(StoreError::Aborted(format!("{verb:?} never arrived")));
        }
        Ok(())
    }

    async fn answer_travels(&self, verb: Verb, is_lost: bool) -> StoreResult<()> {
        // Never at once: a node may freeze before it hears the answer.
        let delay = self.cluster.lock().some_delay() + Duration::from_millis(1);
        sleep(delay).await;
        self.is_reached(verb).await?;
        if is_lost { Err(unknown(verb)) } else { Ok(()) }
    }

    async fn is_reached(&self, verb: Verb) -> StoreResult<()> {
        let is_cut_off = self.cluster.lock().cut_off[self.node];
        if is_cut_off {
            sleep(PATIENCE).await;
            return Err(unknown(verb));
        }
        Ok(())
    }
}

fn unknown(verb: Verb) -> StoreError {
    StoreError::Unknown(format!("the answer to {verb:?} was lost"))
}

/// What the protocol is about goes wrong more often than what surrounds it.
fn percent_of(verb: Option<Verb>) -> u32 {
    if verb.is_some_and(is_protocol) { 10 } else { 3 }
}
