//! The handler: a plain function. A test can call it without a server.

use tickwheel_worker::{Ctx, JobError};

use crate::contract::{Receipt, SendEmail};

/// What the worker opens once, and every handler uses.
pub struct Mailer {
    pub from: String,
}

impl Mailer {
    /// Stands for a real mail server: it writes the message to standard output.
    async fn send(&self, email: &SendEmail, key: &str) -> Result<String, std::io::Error> {
        println!("{} -> {}: {}", self.from, email.to, email.subject);
        Ok(format!("<{key}@example.com>"))
    }
}

pub async fn deliver(email: SendEmail, ctx: Ctx<Mailer>) -> Result<Receipt, JobError> {
    if !email.to.contains('@') {
        // A retry cannot help: the job becomes a dead letter at once.
        return Err(JobError::not_retryable("that is no address").code("bad_address"));
    }
    ctx.progress(10, "rendering");
    tracing::info!(to = email.to, "sending");
    // Any error becomes a failed attempt; the server decides when to try again.
    let message_id = ctx.state().send(&email, &ctx.idempotency_key()).await?;
    Ok(Receipt { message_id })
}
