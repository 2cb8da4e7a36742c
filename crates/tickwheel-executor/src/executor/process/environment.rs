//! The environment of a command: what the operator passes on of the server's, who runs it, what the job says, and what
//! Tickwheel tells it about the attempt. Later ones win.

use std::collections::BTreeMap;

use tickwheel_core::job::ProcessTarget;
use tickwheel_core::ports::AttemptContext;

use super::account::Account;
use super::policy::PATH_DEFAULT;
use crate::executor::http::trace_of;
use crate::wire_time::time;

/// All of it.
pub(super) fn environment(
    attempt: &AttemptContext,
    target: &ProcessTarget,
    passed_on: &[String],
    account: &Account,
) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::from([("PATH".to_owned(), PATH_DEFAULT.to_owned())]);
    variables.extend(std::env::vars_os().filter_map(|(name, value)| {
        let (name, value) = (name.into_string().ok()?, value.into_string().ok()?);
        // Our own configuration holds secrets, whatever a pattern says.
        let is_passed = passed_on.iter().any(|pattern| matches(pattern, &name)) && !name.starts_with(OURS);
        is_passed.then_some((name, value))
    }));
    variables.insert("HOME".into(), account.home().into());
    if let Some(name) = account.name() {
        variables.insert("USER".into(), name.into());
        variables.insert("LOGNAME".into(), name.into());
    }
    variables.extend(target.env.iter().cloned());
    variables.extend(of_attempt(attempt).map(|(name, value)| (name.to_owned(), value)));
    variables
}

const OURS: &str = "TICKWHEEL_";

/// A name, or the beginning of one and a star.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => pattern == name,
    }
}

fn of_attempt(attempt: &AttemptContext) -> impl Iterator<Item = (&'static str, String)> {
    let job = &attempt.job;
    let id = job.id.to_string();
    let schedule = job.schedule_id.map(|id| ("TICKWHEEL_SCHEDULE_ID", id.to_string()));
    [
        ("TICKWHEEL_IDEMPOTENCY_KEY", id.clone()),
        ("TICKWHEEL_JOB_ID", id),
        ("TICKWHEEL_JOB_TYPE", job.job_type.to_string()),
        ("TICKWHEEL_ATTEMPT", job.attempt.to_string()),
        ("TICKWHEEL_FENCING_TOKEN", job.attempt.to_string()),
        ("TICKWHEEL_TOKEN", attempt.token.clone()),
        ("TICKWHEEL_SCHEDULED_FOR", time(job.execute_at).to_string()),
        ("TICKWHEEL_DEADLINE", time(attempt.deadline).to_string()),
        ("TICKWHEEL_TRACEPARENT", trace_of(job)),
        ("TRACEPARENT", trace_of(job)),
    ]
    .into_iter()
    .chain(schedule)
    // A name from outside, which the system could not take.
    .filter(|(_, value)| !value.contains('\0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_a_name_or_the_beginning_of_one() {
        assert!(matches("LANG", "LANG") && !matches("LANG", "LANGUAGE"));
        assert!(matches("LC_*", "LC_ALL") && !matches("LC_*", "LANG"));
        assert!(matches("*", "ANYTHING"));
    }
}
