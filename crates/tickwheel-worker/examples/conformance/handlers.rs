//! The handlers.

use std::collections::HashMap;
use std::fmt;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tickwheel_worker::{Ctx, InDoubt, JobError, OnceOptions, OnceScope};

use crate::contract::{
    AttemptOrNothing, BatchEcho, Block, Echo, Exit, Fail, Log, Once, Progress, Reject, RetryAfter, Sleep,
    Snooze, Stubborn,
};
use crate::events;

/// An error class of the program's own.
#[derive(Debug)]
pub struct ConformanceError(u32);

impl fmt::Display for ConformanceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "asked to fail, attempt {}", self.0)
    }
}

impl std::error::Error for ConformanceError {}

/// An error class that is listed as not retryable.
#[derive(Debug)]
pub struct ListedError;

impl fmt::Display for ListedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("listed as not retryable")
    }
}

impl std::error::Error for ListedError {}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub async fn echo(Echo(payload): Echo, ctx: Ctx) -> Result<Value, JobError> {
    events::start(&ctx);
    let wanted_bytes = match payload.as_object() {
        Some(object) if object.len() == 1 => object.get("make_bytes").and_then(Value::as_u64),
        _ => None,
    };
    let result = match wanted_bytes {
        Some(bytes) => Value::String("x".repeat(usize::try_from(bytes)?.saturating_sub(2))),
        None => payload,
    };
    events::end(&ctx);
    Ok(result)
}

pub async fn sleep(payload: Sleep, ctx: Ctx) -> Result<Value, JobError> {
    events::start(&ctx);
    if let Err(error) = ctx.sleep(ms(payload.for_ms)).await {
        if let Some(reason) = error.cancel_reason() {
            events::cancelled(&ctx, reason);
        }
        return Err(error);
    }
    events::end(&ctx);
    Ok(json!({"slept_ms": payload.for_ms}))
}

pub async fn block(payload: Block, ctx: Ctx) -> Result<Value, JobError> {
    events::start(&ctx);
    let until = Instant::now() + ms(payload.for_ms);
    if payload.how == "sleep" {
        std::thread::sleep(ms(payload.for_ms));
    } else {
        let mut count: u64 = 0;
        while Instant::now() < until {
            count = std::hint::black_box(count.wrapping_add(1));
        }
    }
    events::end(&ctx);
    Ok(json!({"blocked_ms": payload.for_ms}))
}

fn fail_now(attempt: u32, how: &str, ctx: &Ctx) -> Result<AttemptOrNothing, JobError> {
    match how {
        "panic" => {
            events::error(ctx, "panic");
            panic!("asked to fail, attempt {attempt}");
        }
        "not_json" => {
            events::end(ctx);
            Ok(AttemptOrNothing::NotJson)
        }
        _ => {
            events::error(ctx, "ConformanceError");
            Err(ConformanceError(attempt).into())
        }
    }
}

pub async fn fail(payload: Fail, ctx: Ctx) -> Result<AttemptOrNothing, JobError> {
    events::start(&ctx);
    if ctx.attempt() <= payload.times {
        return fail_now(ctx.attempt(), &payload.how, &ctx);
    }
    events::end(&ctx);
    Ok(AttemptOrNothing::Attempt(ctx.attempt()))
}

pub async fn reject(payload: Reject, ctx: Ctx) -> Result<(), JobError> {
    events::start(&ctx);
    if payload.how == "listed" {
        events::error(&ctx, "ListedError");
        return Err(ListedError.into());
    }
    events::error(&ctx, "JobError");
    Err(JobError::not_retryable("rejected as asked").code(payload.code))
}

pub async fn retry_after(payload: RetryAfter, ctx: Ctx) -> Result<Value, JobError> {
    events::start(&ctx);
    if ctx.attempt() <= payload.times {
        events::error(&ctx, "JobError");
        return Err(JobError::retry_after(ms(payload.delay_ms), "later"));
    }
    events::end(&ctx);
    Ok(json!({"attempt": ctx.attempt()}))
}

pub async fn snooze(payload: Snooze, ctx: Ctx) -> Result<Value, JobError> {
    events::start(&ctx);
    if ctx.attempt() <= payload.times {
        events::error(&ctx, "JobError");
        return Err(JobError::snooze(ms(payload.delay_ms)));
    }
    events::end(&ctx);
    Ok(json!({"attempt": ctx.attempt()}))
}

pub async fn progress(payload: Progress, ctx: Ctx) -> Result<Value, JobError> {
    events::start(&ctx);
    for step in 1..=payload.steps {
        ctx.progress(100.0 * f64::from(step) / f64::from(payload.steps), format!("step {step}"));
        ctx.sleep(ms(payload.every_ms)).await?;
    }
    events::end(&ctx);
    Ok(json!({"steps": payload.steps}))
}

pub async fn log(payload: Log, ctx: Ctx) -> Result<Value, JobError> {
    events::start(&ctx);
    for i in 1..=payload.lines {
        let line = format!("line {i} ");
        tracing::info!("{line}{}", "x".repeat(payload.bytes.saturating_sub(line.len())));
        if payload.every_ms > 0 {
            ctx.sleep(ms(payload.every_ms)).await?;
        }
    }
    events::end(&ctx);
    Ok(json!({"lines": payload.lines}))
}

pub async fn once(payload: Once, ctx: Ctx) -> Result<Vec<Value>, JobError> {
    events::start(&ctx);
    let options = OnceOptions {
        scope: if payload.scope == "tenant" { OnceScope::Tenant } else { OnceScope::Job },
        in_doubt: if payload.in_doubt == "fail" { InDoubt::Fail } else { InDoubt::Again },
        ttl: None,
    };
    let mut results = Vec::new();
    for _ in 0..payload.calls {
        let effect = async |key: String| -> Result<Value, JobError> {
            events::record("effect", &ctx, json!({"idempotency_key": key}));
            if payload.die && ctx.attempt() == 1 {
                std::process::exit(9);
            }
            ctx.sleep(ms(payload.hold_ms)).await?;
            Ok(json!({"effect": key}))
        };
        results.push(ctx.once_with(options, &payload.key, effect).await?);
    }
    if ctx.attempt() <= payload.fail_times {
        fail_now(ctx.attempt(), "error", &ctx)?;
    }
    events::end(&ctx);
    Ok(results)
}

pub async fn exit(payload: Exit, ctx: Ctx) -> Result<(), JobError> {
    events::start(&ctx);
    std::process::exit(payload.code);
}

pub fn stubborn(payload: Stubborn, ctx: Ctx) -> Result<Value, JobError> {
    events::start(&ctx);
    std::thread::sleep(ms(payload.for_ms));
    events::end(&ctx);
    Ok(json!({"slept_ms": payload.for_ms}))
}

/// How often this process has seen each `n`.
static SEEN: LazyLock<Mutex<HashMap<u64, u32>>> = LazyLock::new(Mutex::default);

pub async fn batch_echo(payloads: Vec<BatchEcho>, _: Ctx) -> Result<Vec<Result<u64, JobError>>, JobError> {
    let ns: Vec<u64> = payloads.iter().map(|payload| payload.n).collect();
    events::record_alone("batch", json!({"type": "batch_echo", "ns": ns}));
    let mut entries = Vec::new();
    let (mut raise, mut short) = (false, false);
    for payload in &payloads {
        let acts = {
            let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
            let times = seen.entry(payload.n).or_default();
            *times += 1;
            *times <= payload.times
        };
        match payload.how.as_str() {
            "fail" if acts => {
                entries.push(Err(ConformanceError(1).into()));
                continue;
            }
            "raise" if acts => raise = true,
            "short" if acts => short = true,
            _ => {}
        }
        entries.push(Ok(payload.n));
    }
    if raise {
        return Err(ConformanceError(1).into());
    }
    if short {
        entries.pop();
    }
    Ok(entries)
}
