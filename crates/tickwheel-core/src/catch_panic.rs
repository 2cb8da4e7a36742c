//! Work that may panic alone: what a stranger's request or a target's answer sets off.
//!
//! A panic anywhere else ends the process, for half a server would look alive. The program's panic hook asks
//! [`is_caught`] which of the two it is, before anything is unwound.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

thread_local! {
    static CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// The work panicked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Panicked;

/// Whether a panic at this point is caught, and would end only the work under way.
pub fn is_caught() -> bool {
    CAUGHT.get()
}

/// Does `work`; if it panics, nothing else ends. What it leaves behind must not be used afterwards.
pub fn catch_panic<T>(work: impl FnOnce() -> T) -> Result<T, Panicked> {
    let outer = CAUGHT.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    CAUGHT.set(outer);
    done.map_err(|_| Panicked)
}

/// Like [`catch_panic`], for a future.
pub async fn catch_panic_async<T>(work: impl Future<Output = T>) -> Result<T, Panicked> {
    let mut work = pin!(work);
    poll_fn(|context| match catch_panic(|| work.as_mut().poll(context)) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(value)) => Poll::Ready(Ok(value)),
        Err(panicked) => Poll::Ready(Err(panicked)),
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use super::*;

    #[test]
    fn only_what_is_inside_is_caught() {
        assert!(!is_caught());
        assert_eq!(catch_panic(|| catch_panic(is_caught)), Ok(Ok(true)));
        let nested = catch_panic(|| (catch_panic(|| panic!("on purpose")), is_caught()));
        assert_eq!(nested, Ok((Err::<(), _>(Panicked), true)));
        assert!(!is_caught());
    }

    #[test]
    fn a_future_that_panics_ends_with_an_error() {
        let mut work = pin!(catch_panic_async(async {
            assert!(is_caught());
            std::future::pending::<()>().await;
        }));
        let mut context = Context::from_waker(Waker::noop());
        assert_eq!(work.as_mut().poll(&mut context), Poll::Pending);
        assert!(!is_caught());
        let mut panicking = pin!(catch_panic_async(async { panic!("on purpose") }));
        assert_eq!(panicking.as_mut().poll(&mut context), Poll::Ready(Err::<(), _>(Panicked)));
    }
}
