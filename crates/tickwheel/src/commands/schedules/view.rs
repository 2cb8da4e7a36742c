//! How a schedule is printed: in a line, in a table, in full.

use tickwheel_core::schedule::Zone;
use tickwheel_protocol::{BackfillStatus, Missed, MissedPolicy, Schedule, Target, Time};

use super::backfill;
use super::strip::Signs;
use crate::commands::local;
use crate::output::{Output, Table, Tone, column, facts, moment, now, plain, relative};

/// A schedule in one line.
pub fn line(schedule: &Schedule) -> String {
    let (next, _) = next(schedule, now());
    format!("{}  {}  {}  {next}", schedule.id, plain(&schedule.name), plain(&schedule.description))
}

/// What is printed about a schedule that was just created.
pub fn announcement(schedule: &Schedule) -> String {
    let fires = format!("it fires {} ({})", plain(&schedule.description), plain(&schedule.timezone));
    match next(schedule, now()).0.as_str() {
        "never" => format!("{fires}: never, there is no such date"),
        "paused" => format!("{fires}, once it is resumed"),
        next => format!("{fires}, next {next}"),
    }
}

/// When it fires next, or why it does not.
fn next(schedule: &Schedule, now: Time) -> (String, Tone) {
    match schedule.next_fire_at {
        _ if schedule.paused => ("paused".into(), Tone::Held),
        _ if schedule.never => ("never".into(), Tone::Bad),
        Some(at) => (relative(at, now), Tone::Plain),
        None => ("not within a year".into(), Tone::Quiet),
    }
}

/// Schedules in a table.
pub fn table(output: &Output, schedules: &[Schedule]) -> Table {
    let (now, here, signs) = (now(), local::zone(), Signs::detect());
    let columns = [
        column("NAME").cut(16),
        column("FIRES").cut(16),
        column("NEXT"),
        column("YOUR TIME").spare(3),
        column("ITS TIME").spare(1),
        column("TIME ZONE").spare(2),
        column("LAST").spare(4),
    ];
    let mut table = Table::new(output, &columns);
    for schedule in schedules {
        let clock = |zone: Option<Zone>| {
            let at = schedule.next_fire_at.zip(zone);
            (at.map(|(at, zone)| local::clock(at, zone)).unwrap_or_default(), Tone::Plain)
        };
        table.row([
            (schedule.name.clone(), Tone::Plain),
            (schedule.description.clone(), Tone::Plain),
            next(schedule, now),
            clock(Some(here)),
            clock(its_zone(schedule)),
            (schedule.timezone.clone(), Tone::Quiet),
            (signs.strip(&schedule.last_fires), last_tone(schedule)),
        ]);
    }
    table
}

/// A server may know zones that this program does not know.
fn its_zone(schedule: &Schedule) -> Option<Zone> {
    Zone::named(&schedule.timezone).ok()
}

fn last_tone(schedule: &Schedule) -> Tone {
    use tickwheel_protocol::FireOutcome::Missed;
    if schedule.last_fires.iter().any(|fire| fire.outcome == Missed) { Tone::Bad } else { Tone::Good }
}

/// Everything about a schedule.
pub fn full(output: &Output, schedule: &Schedule) -> String {
    let now = now();
    let plainly = |name, value: Option<String>| (name, value, Tone::Plain);
    let time = |name, at: Option<Time>| (name, at.map(|at| moment(at, now)), Tone::Plain);
    let (next, tone) = next(schedule, now);
    let clock = |zone: Option<Zone>| {
        let at = schedule.next_fire_at.zip(zone);
        at.map(|(at, zone)| format!("{} ({zone})", local::clock(at, zone)))
    };
    let signs = Signs::detect();
    let some = |list: &[String]| Some(list.join(", ")).filter(|list| !list.is_empty());
    let when = [
        plainly("id", Some(schedule.id.to_string())),
        plainly("name", Some(schedule.name.clone())),
        plainly("fires", Some(schedule.description.clone())),
        plainly("cron", schedule.cron.clone()),
        plainly("every", schedule.every.map(|every| every.to_string())),
        plainly("time zone", Some(schedule.timezone.clone())),
        ("next", Some(next), tone),
        plainly("its time", clock(its_zone(schedule))),
        plainly("your time", clock(Some(local::zone()))),
        ("note", schedule.pause_note.clone(), Tone::Held),
        ("backfill", running_backfill(schedule), Tone::Busy),
        ("queued since", schedule.queued_since.map(|at| moment(at, now)), Tone::Held),
        time("start", schedule.start_at),
        time("end", schedule.end_at),
        plainly("jitter", Some(schedule.jitter.to_string()).filter(|jitter| jitter != "0s")),
        plainly("not on", some(&schedule.exclude)),
        plainly("on those days", some(&schedule.exclude).map(|_| schedule.on_excluded.to_string())),
    ];
    let job = &schedule.job;
    let rules = [
        plainly("missed", Some(missed(&schedule.missed))),
        plainly("overlap", Some(schedule.overlap.to_string())),
        plainly("dst gap", Some(schedule.dst_gap.to_string())),
        plainly("dst fold", Some(schedule.dst_fold.to_string())),
        plainly("day logic", Some(schedule.day_logic.to_string())),
        plainly("job type", Some(job.job_type.clone())),
        plainly("target", job.target.as_ref().map(target)),
        plainly("queue", job.queue.clone()),
        plainly("priority", job.priority.map(|priority| priority.to_string())),
        plainly("payload", job.payload.as_ref().map(|payload| payload.get().to_owned())),
        plainly("tags", job.tags.as_deref().and_then(some)),
        time("created", Some(schedule.created_at)),
        time("changed", Some(schedule.updated_at)),
        ("last", Some(signs.strip(&schedule.last_fires)).filter(|s| !s.is_empty()), last_tone(schedule)),
        ("", signs.legend(schedule.last_fires.iter()), Tone::Quiet),
    ];
    facts(output, &[when.as_slice(), rules.as_slice()].concat())
}

fn running_backfill(schedule: &Schedule) -> Option<String> {
    let running = schedule.backfill.filter(|backfill| backfill.status == BackfillStatus::Running);
    running.as_ref().map(backfill::summary)
}

fn missed(missed: &Missed) -> String {
    let policy = missed.policy.unwrap_or(MissedPolicy::FireOnce);
    let window = missed.window.map(|window| format!(", not older than {window}")).unwrap_or_default();
    let cap = missed.max_backfill.filter(|_| policy == MissedPolicy::Backfill);
    format!("{policy}{window}{}", cap.map(|cap| format!(", at most {cap}")).unwrap_or_default())
}

fn target(target: &Target) -> String {
    match target {
        Target::Http(http) => format!("{} {}", http.method, http.url),
        Target::Workflow(workflow) => format!("workflow {}", workflow.name),
        Target::Worker(_) => "a worker".into(),
        Target::FanOut(_) => "its items".into(),
        Target::Process(process) => plain(&process.command.join(" ")),
        Target::Message(_) => "a message".into(),
    }
}
