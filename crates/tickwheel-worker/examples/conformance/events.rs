//! What the handlers record: one JSON object per line, written with a single write to a file opened for appending.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::sync::{LazyLock, OnceLock};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};
use tickwheel_worker::{CancelReason, Ctx};

static FILE: LazyLock<Option<File>> = LazyLock::new(|| {
    let path = std::env::var_os("CONFORMANCE_EVENTS")?;
    OpenOptions::new().create(true).append(true).open(path).ok()
});

/// Records an event of the handler that has this context.
pub fn record(event: &str, ctx: &Ctx, more: Value) {
    let mut fields = json!({
        "type": ctx.job().job_type(), "job_id": ctx.job().id(), "attempt": ctx.attempt(),
        "fencing_token": ctx.fencing_token(),
    });
    merge(&mut fields, more);
    record_alone(event, fields);
}

/// Records an event that is about no single job.
pub fn record_alone(event: &str, more: Value) {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    let Some(mut file) = FILE.as_ref() else { return };
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut fields = json!({
        "event": event, "pid": std::process::id(), "wall_ms": wall.as_secs_f64() * 1000.0,
        "mono_ms": ORIGIN.get_or_init(Instant::now).elapsed().as_secs_f64() * 1000.0,
    });
    merge(&mut fields, more);
    if let Err(error) = file.write_all(format!("{fields}\n").as_bytes()) {
        eprintln!("an event could not be written: {error}");
    }
}

pub fn start(ctx: &Ctx) {
    record("start", ctx, json!({"traceparent": ctx.traceparent()}));
}

pub fn end(ctx: &Ctx) {
    record("end", ctx, Value::Null);
}

pub fn error(ctx: &Ctx, class: &str) {
    record("error", ctx, json!({"error": class}));
}

pub fn cancelled(ctx: &Ctx, reason: CancelReason) {
    record("cancelled", ctx, json!({"reason": reason.as_str()}));
}

fn merge(fields: &mut Value, more: Value) {
    let more = if let Value::Object(more) = more { more } else { Map::new() };
    if let Some(fields) = fields.as_object_mut() {
        fields.extend(more);
    }
}
