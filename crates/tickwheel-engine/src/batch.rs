//! Batches by nature: while one commit is under way the next batch gathers, then goes. Nobody waits for a batch to
//! fill: those who are ready at that moment get a turn first, for a fraction of a millisecond, and that is all.

use std::future::Future;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// How large batches may grow and how many may be under way.
#[derive(Clone, Copy, Debug)]
pub struct BatchLimits {
    /// The weight at which a batch is full.
    pub weight_max: usize,
    /// Batches under way at the same time.
    pub in_flight_max: usize,
}

impl Default for BatchLimits {
    fn default() -> Self {
        Self { weight_max: 2_000, in_flight_max: 2 }
    }
}

/// Before a batch goes, those who are ready to run get a turn, for so long,
const TURNS_TIME_MAX: Duration = Duration::from_micros(400);
/// but not more often than this if none of them brings anything.
const IDLE_TURNS_MAX: usize = 4;

/// Commits what arrives until every sender is gone, then waits for what is under way.
pub async fn commit_in_batches<T, F, Fut>(
    mut arriving: mpsc::Receiver<T>,
    limits: BatchLimits,
    weight: impl Fn(&T) -> usize,
    mut commit: F,
) where
    F: FnMut(Vec<T>) -> Fut,
    Fut: Future<Output = ()>,
{
    let mut in_flight = FuturesUnordered::new();
    loop {
        tokio::select! {
            biased;
            Some(()) = in_flight.next(), if !in_flight.is_empty() => {}
            first = arriving.recv(), if in_flight.len() < limits.in_flight_max => {
                let Some(first) = first else { break };
                let batch = gather(first, &mut arriving, limits.weight_max, &weight).await;
                in_flight.push(commit(batch));
            }
        }
    }
    while in_flight.next().await.is_some() {}
}

/// What has arrived, and what those who are ready to run at this moment bring: they get a turn before the batch goes. A
/// commit costs far more than their turns, and most of what ends together would otherwise just miss it.
async fn gather<T>(
    first: T,
    arriving: &mut mpsc::Receiver<T>,
    weight_max: usize,
    weight: impl Fn(&T) -> usize,
) -> Vec<T> {
    let mut total = weight(&first);
    let mut batch = vec![first];
    let (mut idle_turns, started) = (0, Instant::now());
    loop {
        let before = batch.len();
        while total < weight_max
            && let Ok(item) = arriving.try_recv()
        {
            total += weight(&item);
            batch.push(item);
        }
        idle_turns = if batch.len() > before { 0 } else { idle_turns + 1 };
        if idle_turns == IDLE_TURNS_MAX || total >= weight_max || started.elapsed() > TURNS_TIME_MAX {
            return batch;
        }
        tokio::task::yield_now().await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tokio::sync::Semaphore;

    use super::*;

    #[tokio::test]
    async fn what_arrives_during_a_commit_forms_the_next_batch() {
        let (send, arriving) = mpsc::channel(100);
        let (gate, batches) = (Arc::new(Semaphore::new(0)), Arc::new(Mutex::new(Vec::new())));
        let (started, mut starts) = mpsc::unbounded_channel();
        let limits = BatchLimits { weight_max: 5, in_flight_max: 1 };
        let committing = tokio::spawn(commit_in_batches(arriving, limits, |_| 1, {
            let (gate, batches) = (gate.clone(), batches.clone());
            move |batch: Vec<u32>| {
                let (gate, batches, started) = (gate.clone(), batches.clone(), started.clone());
                async move {
                    started.send(()).unwrap();
                    gate.acquire().await.unwrap().forget();
                    batches.lock().unwrap().push(batch);
                }
            }
        }));
        send.send(0).await.unwrap();
        starts.recv().await.unwrap();
        for number in 1..8 {
            send.send(number).await.unwrap();
        }
        drop(send);
        gate.add_permits(3);
        committing.await.unwrap();
        assert_eq!(*batches.lock().unwrap(), [vec![0], vec![1, 2, 3, 4, 5], vec![6, 7]]);
    }
}
