//! An attempt, as a built-in executor runs it.

use tickwheel_core::payload::Document;
use tickwheel_core::ports::AttemptContext;
use tickwheel_core::{Job, JsonText, Timestamp};
use tickwheel_worker::Ctx;

/// What the executor needs of the attempt. It gets the time that is left, by our own clock.
pub(super) fn context(ctx: &Ctx) -> AttemptContext {
    let wire = ctx.job().details();
    let mut job: Job = tickwheel_api::executed_job(wire, ctx.traceparent());
    let mut spec = (*job.spec).clone();
    let time_left_ms = u64::try_from(ctx.time_left().as_millis()).unwrap_or(u64::MAX);
    spec.timeout_ms = spec.timeout_ms.min(time_left_ms);
    job.spec = spec.into();
    let payload = wire.payload.as_ref().map_or("null", |payload| payload.get());
    AttemptContext {
        job: Box::new(job),
        payload: Document::Whole(JsonText::from_checked(payload)),
        token: ctx.token().to_owned(),
        deadline: Timestamp::from_millis(ctx.deadline().as_millis()),
    }
}
