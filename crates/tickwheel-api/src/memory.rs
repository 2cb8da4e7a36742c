//! How much memory requests take together, whatever each of them may take.
//!
//! A body is counted as it arrives, until its request is answered; who only announces much takes nothing. Bodies that
//! have grown large leave a part of the budget alone, so that many of them cannot keep small requests out.
//!
//! Answers are counted until the client has fetched them, unless they are small. There are only so many lists at a
//! time, only so many tasks of runs, and only so many bytes of single documents.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hyper::header::CONTENT_TYPE;
use hyper::http::request::Parts;
use serde::Serialize;
use tickwheel_protocol::Code;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use crate::error::{ApiError, ApiResult};
use crate::state::ApiState;

/// Lists that are made, or are large and being fetched, at once.
const LISTS_MAX: usize = 16;
/// How long a list waits for its turn.
const TURN_WAIT: Duration = Duration::from_secs(10);
/// What is smaller does not weigh.
pub const SMALL_BYTES_MAX: usize = 64 << 10;
/// Bytes of single documents over [`SMALL_BYTES_MAX`] that are being fetched at once.
const DOCUMENTS_BYTES_MAX: usize = 128 << 20;
/// Tasks of runs that are held at once, each some hundred bytes. A run that has more is held alone.
const RUN_TASKS_MAX: u32 = 200_000;
/// A run with fewer tasks does not weigh.
const SMALL_RUN_TASKS_MAX: u32 = 100;

/// The memory of all requests. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Memory {
    bodies: Arc<Budget>,
    documents: Arc<Budget>,
    lists: Arc<Semaphore>,
    run_tasks: Arc<Semaphore>,
}

#[derive(Debug)]
struct Budget {
    bytes_max: usize,
    bytes: AtomicUsize,
}

impl Memory {
    /// With room for so many bytes of bodies.
    pub fn new(bodies_bytes_max: usize) -> Self {
        let budget = |bytes_max| Arc::new(Budget { bytes_max, bytes: AtomicUsize::new(0) });
        Self {
            bodies: budget(bodies_bytes_max),
            documents: budget(DOCUMENTS_BYTES_MAX),
            lists: Arc::new(Semaphore::new(LISTS_MAX)),
            run_tasks: Arc::new(Semaphore::new(RUN_TASKS_MAX as usize)),
        }
    }

    /// Room for a body of which nothing has come yet.
    pub fn reserve(&self) -> Reservation {
        Reservation { budget: self.bodies.clone(), bytes: 0 }
    }

    /// The answer to a request that reads one thing. A large one takes room until the client has fetched it.
    pub fn document(&self, document: &impl Serialize) -> ApiResult<Response> {
        let text = serde_json::to_vec(document).expect("what is answered can be written as JSON");
        let content_type = [(CONTENT_TYPE, "application/json")];
        if text.len() <= SMALL_BYTES_MAX {
            return Ok((content_type, text).into_response());
        }
        let mut room = Reservation { budget: self.documents.clone(), bytes: 0 };
        if !room.try_grow(text.len(), DOCUMENTS_BYTES_MAX) {
            let detail = "the answers under way are larger than the server's limit for all of them";
            return Err(ApiError::new(Code::Overloaded, detail));
        }
        Ok((content_type, room.hold(text.into())).into_response())
    }

    /// Room to hold a run with so many tasks, waited for if need be.
    pub async fn run(&self, tasks: u32) -> ApiResult<RunRoom> {
        let permit = match tasks > SMALL_RUN_TASKS_MAX {
            true => Some(granted(self.run_tasks.clone().acquire_many_owned(tasks.min(RUN_TASKS_MAX))).await?),
            false => None,
        };
        Ok(RunRoom { _permit: permit })
    }
}

/// Room to hold a run; given back when dropped.
#[derive(Debug)]
pub struct RunRoom {
    _permit: Option<OwnedSemaphorePermit>,
}

/// The permit, if it comes in time.
async fn granted(
    permit: impl Future<Output = Result<OwnedSemaphorePermit, AcquireError>>,
) -> ApiResult<OwnedSemaphorePermit> {
    match tokio::time::timeout(TURN_WAIT, permit).await {
        Ok(permit) => Ok(permit.expect("these semaphores are never closed")),
        Err(_) => {
            let detail =
                "more large answers are asked for than the server makes at once; nothing was changed";
            Err(ApiError::new(Code::Overloaded, detail))
        }
    }
}

/// The room one body takes; given back when dropped.
#[derive(Debug)]
pub struct Reservation {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Reservation {
    /// Takes room for so many bytes more, if there is room.
    pub fn grow(&mut self, bytes: usize) -> ApiResult<()> {
        let (all, most) = (self.budget.bytes_max, self.budget.bytes_max / 4 * 3);
        if self.try_grow(bytes, if self.bytes + bytes <= SMALL_BYTES_MAX { all } else { most }) {
            return Ok(());
        }
        let detail =
            "the requests under way are larger than the server's limit for all of them; nothing was changed";
        Err(ApiError::new(Code::Overloaded, detail))
    }

    /// Takes the room in any case, and says whether all that is taken now is within `bytes_max`.
    fn try_grow(&mut self, bytes: usize, bytes_max: usize) -> bool {
        self.bytes += bytes;
        let taken = self.budget.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        taken <= bytes_max
    }

    /// The body, which keeps its room for as long as it is there.
    pub fn hold(self, body: Bytes) -> Bytes {
        Bytes::from_owner(Held::new(body, self))
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Leave to make a list, kept until a large one is fetched.
#[derive(Debug)]
pub struct Turn {
    _permit: OwnedSemaphorePermit,
}

impl FromRequestParts<ApiState> for Turn {
    type Rejection = ApiError;

    async fn from_request_parts(_: &mut Parts, state: &ApiState) -> ApiResult<Self> {
        granted(state.memory.lists.clone().acquire_owned()).await.map(|permit| Self { _permit: permit })
    }
}

/// Bytes, and what is given back when they are gone.
pub struct Held<B, U> {
    bytes: B,
    _until: U,
}

impl<B, U> Held<B, U> {
    /// `bytes`, and `until` as long as they are there.
    pub const fn new(bytes: B, until: U) -> Self {
        Self { bytes, _until: until }
    }
}

impl<B: AsRef<[u8]>, U> AsRef<[u8]> for Held<B, U> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_taken_as_a_body_grows_and_given_back_with_it() {
        let memory = Memory::new(1 << 20);
        let mut body = memory.reserve();
        body.grow(500_000).unwrap();
        let held = body.hold(Bytes::from_static(b"body"));
        let mut another = memory.reserve();
        assert_eq!(another.grow(500_000).unwrap_err().0.code, "overloaded");
        drop(another);
        drop(held);
        memory.reserve().grow(700_000).unwrap();
    }

    #[test]
    fn large_bodies_leave_room_for_small_ones() {
        let memory = Memory::new(1 << 20);
        let mut large = memory.reserve();
        large.grow(780_000).unwrap();
        assert!(large.grow(10_000).is_err(), "beyond three quarters");
        let mut small = memory.reserve();
        small.grow(60_000).unwrap();
        assert!(small.grow(200_000).is_err(), "it is not small any more");
    }

    #[tokio::test]
    async fn large_documents_have_a_bound_together_and_small_ones_do_not_weigh() {
        let memory = Memory::new(0);
        let large = "x".repeat(DOCUMENTS_BYTES_MAX / 2);
        let first = memory.document(&large).unwrap();
        assert!(memory.document(&large).is_err(), "two of them with their quotation marks are too much");
        memory.document(&"x".repeat(SMALL_BYTES_MAX - 2)).unwrap();
        drop(first);
        memory.document(&large).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn the_tasks_of_large_runs_have_a_bound_together_and_small_runs_do_not_weigh() {
        let memory = Memory::new(0);
        let first = memory.run(RUN_TASKS_MAX - 1_000).await.unwrap();
        assert_eq!(memory.run(1_001).await.unwrap_err().0.code, "overloaded");
        let second = memory.run(1_000).await.unwrap();
        memory.run(SMALL_RUN_TASKS_MAX).await.unwrap();
        drop((first, second));
        let _alone = memory.run(u32::MAX).await.unwrap();
        assert!(memory.run(SMALL_RUN_TASKS_MAX + 1).await.is_err());
    }
}
