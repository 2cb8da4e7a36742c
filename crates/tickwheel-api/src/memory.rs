//! How much memory requests take together, whatever each of them may take.
//!
//! A body is counted as it arrives, until its request is answered; who only announces much takes nothing. Bodies that have grown large
//! leave a part of the budget alone, so that many of them cannot keep small requests out. Lists are made a few at a time, and one that is
//! large is counted until the client has fetched it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::extract::FromRequestParts;
use bytes::Bytes;
use hyper::http::request::Parts;
use tickwheel_protocol::Code;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::{ApiError, ApiResult};
use crate::state::ApiState;

/// Lists that are made, or are large and being fetched, at once.
const LISTS_MAX: usize = 16;
/// How long a list waits for its turn.
const TURN_WAIT: Duration = Duration::from_secs(10);
/// What is smaller does not weigh.
const SMALL_BYTES_MAX: usize = 64 << 10;

/// The memory of all requests. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Memory {
    bodies: Arc<Budget>,
    lists: Arc<Semaphore>,
}

#[derive(Debug)]
struct Budget {
    bytes_max: usize,
    bytes: AtomicUsize,
}

impl Memory {
    /// With room for so many bytes of bodies.
    pub fn new(bodies_bytes_max: usize) -> Self {
        let bodies = Budget { bytes_max: bodies_bytes_max, bytes: AtomicUsize::new(0) };
        Self { bodies: Arc::new(bodies), lists: Arc::new(Semaphore::new(LISTS_MAX)) }
    }

    /// Room for a body of which nothing has come yet.
    pub fn reserve(&self) -> Reservation {
        Reservation { budget: self.bodies.clone(), bytes: 0 }
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
        self.bytes += bytes;
        let taken = self.budget.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let (all, most) = (self.budget.bytes_max, self.budget.bytes_max / 4 * 3);
        if taken <= if self.bytes <= SMALL_BYTES_MAX { all } else { most } {
            return Ok(());
        }
        let detail = "the requests under way are larger than the server takes at once; nothing was changed";
        Err(ApiError::new(Code::Overloaded, detail))
    }

    /// The body, which keeps its room for as long as it is there.
    pub fn hold(self, body: Bytes) -> Bytes {
        Bytes::from_owner(Held { bytes: body, _until: self })
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Leave to make a list.
#[derive(Debug)]
pub struct Turn {
    _permit: OwnedSemaphorePermit,
}

impl FromRequestParts<ApiState> for Turn {
    type Rejection = ApiError;

    async fn from_request_parts(_: &mut Parts, state: &ApiState) -> ApiResult<Self> {
        let turn = state.memory.lists.clone().acquire_owned();
        match tokio::time::timeout(TURN_WAIT, turn).await {
            Ok(permit) => Ok(Self { _permit: permit.expect("this semaphore is never closed") }),
            Err(_) => {
                Err(ApiError::new(Code::Overloaded, "more lists are asked for than the server makes at once"))
            }
        }
    }
}

impl Turn {
    /// The list. A large one is released only when the client has fetched it.
    pub fn hold(self, list: Vec<u8>) -> Bytes {
        if list.len() <= SMALL_BYTES_MAX {
            return list.into();
        }
        Bytes::from_owner(Held { bytes: list, _until: self })
    }
}

/// Bytes, and what is given back when they are gone.
struct Held<B, U> {
    bytes: B,
    _until: U,
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
}
