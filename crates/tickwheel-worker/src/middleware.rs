//! Middleware: functions around every attempt. The first one registered is the outermost.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::value::RawValue;

use crate::ctx::Ctx;
use crate::error::JobError;
use crate::handler::{Call, Registered, Returned};

/// What a handler returned, as JSON: one entry per job.
pub struct Output(pub(crate) Vec<Result<Box<RawValue>, JobError>>);

impl Output {
    /// The result of the job. `None` in a batch, and if it failed.
    pub fn json(&self) -> Option<&str> {
        match self.0.as_slice() {
            [Ok(result)] => Some(result.get()),
            _ => None,
        }
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Output of {} jobs", self.0.len())
    }
}

pub(crate) type Middleware<S> = Arc<dyn Fn(Ctx<S>, Next<S>) -> Call + Send + Sync>;

/// The rest of the chain: the next middleware, or the handler.
pub struct Next<S> {
    handler: Arc<Registered<S>>,
    rest: Arc<[Middleware<S>]>,
    position: usize,
    ctx: Ctx<S>,
    /// What the handler returned. It counts, whatever a middleware does afterwards.
    returned: Arc<Mutex<Option<Returned>>>,
}

impl<S: Send + Sync + 'static> Next<S> {
    /// Runs the rest of the chain.
    pub fn run(self) -> Pin<Box<dyn Future<Output = Result<Output, JobError>> + Send>> {
        match self.rest.get(self.position).cloned() {
            Some(middleware) => {
                let ctx = self.ctx.clone();
                middleware(ctx, Self { position: self.position + 1, ..self })
            }
            None => Box::pin(async move {
                let returned = self.handler.call(self.ctx).await;
                let seen = match &returned {
                    Ok(output) => Ok(Output(output.0.iter().map(seen).collect())),
                    Err(error) => Err(JobError::new(error)),
                };
                *self.returned.lock().unwrap_or_else(PoisonError::into_inner) = Some(returned);
                seen
            }),
        }
    }
}

/// An entry as middleware sees it.
fn seen(entry: &Result<Box<RawValue>, JobError>) -> Result<Box<RawValue>, JobError> {
    match entry {
        Ok(result) => Ok(result.clone()),
        Err(error) => Err(JobError::new(error)),
    }
}

/// Calls a handler through all middleware.
pub(crate) fn call<S: Send + Sync + 'static>(
    handler: Arc<Registered<S>>,
    middleware: &Arc<[Middleware<S>]>,
    ctx: Ctx<S>,
) -> Call {
    if middleware.is_empty() {
        return handler.call(ctx);
    }
    let returned = Arc::new(Mutex::new(None));
    let next = Next { handler, rest: middleware.clone(), position: 0, ctx, returned: returned.clone() };
    Box::pin(async move {
        let chain = next.run().await;
        let own = returned.lock().unwrap_or_else(PoisonError::into_inner).take();
        match (own, chain) {
            (Some(Ok(output)), Err(error)) => {
                tracing::warn!(%error, "a middleware failed after the handler had returned");
                Ok(output)
            }
            (Some(own), _) => own,
            (None, chain) => chain,
        }
    })
}
