//! The options that `create` and `edit` share: when a schedule fires, by which rules, and which job it makes. Without
//! an option, the server uses its default, or the value does not change.

use clap::Args;
use tickwheel_protocol::{
    DayLogic, DstFold, DstGap, HttpTarget, Missed, MissedPolicy, OnExcluded, Overlap, Priority, Retry, Span,
    SubmitJob, Target, Time,
};

use crate::cli::{one_of, whole};
use crate::commands::input::{header, json_argument};
use crate::commands::process::{ProcessOptions, variable};
use crate::failure::CommandError;

/// When it fires, and by which rules.
#[derive(Debug, Default, PartialEq, Args)]
#[group(id = "RuleOptions", multiple = true)]
#[command(next_help_heading = "When it fires")]
pub struct RuleOptions {
    /// Cron expression: five fields, six with leading seconds, or a nickname such as @daily
    #[arg(long, value_name = "EXPR", conflicts_with_all = ["every", "anchor"])]
    pub cron: Option<String>,
    /// Interval instead of an expression, such as 90s, 5m, 4h
    #[arg(long, value_name = "DURATION")]
    pub every: Option<Span>,
    /// Time from which the interval counts (RFC 3339) [default: 1970-01-01T00:00:00Z]
    #[arg(long, value_name = "TIME")]
    pub anchor: Option<Time>,
    /// IANA name of the time zone for local times [default: UTC]
    #[arg(long, value_name = "ZONE")]
    pub timezone: Option<String>,
    /// Do not fire before this time (RFC 3339)
    #[arg(long, value_name = "TIME")]
    pub start_at: Option<Time>,
    /// Do not fire after this time (RFC 3339)
    #[arg(long, value_name = "TIME")]
    pub end_at: Option<Time>,
    /// Day without firings: 2026-12-25, 2026-12-24/2026-12-31 or calendar:NAME; may be repeated
    #[arg(long = "exclude", value_name = "DAYS")]
    pub exclude: Vec<String>,
    /// What happens to firings on those days [default: skip]
    #[arg(long, value_name = "RULE", value_parser = one_of(OnExcluded::ALL, OnExcluded::as_str))]
    pub on_excluded: Option<OnExcluded>,
    /// Start jobs up to this long after their time, always by the same amount [default: 0s]
    #[arg(long, value_name = "DURATION")]
    pub jitter: Option<Span>,
    /// What happens to firings missed during an outage [default: fire_once]
    #[arg(long, value_name = "POLICY", value_parser = one_of(MissedPolicy::ALL, MissedPolicy::as_str))]
    pub missed: Option<MissedPolicy>,
    /// Make up only for firings that are not older than this [default: 24h]
    #[arg(long, value_name = "DURATION")]
    pub missed_window: Option<Span>,
    /// Make up for at most this many firings [default: 100]
    #[arg(long, value_name = "N", value_parser = whole(0..=u32::MAX), allow_negative_numbers = true)]
    pub max_backfill: Option<u32>,
    /// What happens to a firing while an earlier job has not ended [default: allow]
    #[arg(long, value_name = "RULE", value_parser = one_of(Overlap::ALL, Overlap::as_str))]
    pub overlap: Option<Overlap>,
    /// What happens to fixed times that the clock skips [default: run_after]
    #[arg(long, value_name = "GAP", value_parser = one_of(DstGap::ALL, DstGap::as_str))]
    pub dst_gap: Option<DstGap>,
    /// What happens to fixed times that occur twice [default: once]
    #[arg(long, value_name = "FOLD", value_parser = one_of(DstFold::ALL, DstFold::as_str))]
    pub dst_fold: Option<DstFold>,
    /// How day-of-month and day-of-week combine [default: or]
    #[arg(long, value_name = "LOGIC", value_parser = one_of(DayLogic::ALL, DayLogic::as_str))]
    pub day_logic: Option<DayLogic>,
}

impl RuleOptions {
    /// How missed firings are made up for, if there is an option for it.
    pub fn missed(&self) -> Option<Missed> {
        let missed =
            Missed { policy: self.missed, window: self.missed_window, max_backfill: self.max_backfill };
        Some(missed).filter(|missed| *missed != Missed::default())
    }

    /// The excluded days, if there are any.
    pub fn excluded(&self) -> Option<Vec<String>> {
        Some(self.exclude.clone()).filter(|days| !days.is_empty())
    }
}

/// The job that each firing makes. A file can set the fields that have no option here.
#[derive(Debug, Default, PartialEq, Args)]
#[group(id = "WorkOptions", multiple = true)]
#[command(next_help_heading = "The job of each firing")]
pub struct WorkOptions {
    /// Kind of work: the name of the handler [default: the name of the schedule]
    #[arg(long = "type", value_name = "TYPE")]
    job_type: Option<String>,
    /// URL to call [default: a worker executes the job]
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// HTTP method [default: POST]
    #[arg(long, value_name = "METHOD")]
    method: Option<String>,
    /// Header to send; may be repeated
    #[arg(long = "header", value_name = "NAME:VALUE", value_parser = header)]
    headers: Vec<(String, String)>,
    /// Command to run on the server's machine, and its arguments, after `--`
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "url")]
    command: Vec<String>,
    /// Environment variable of the command; may be repeated
    #[arg(long = "env", value_name = "NAME=VALUE", conflicts_with = "url", value_parser = variable)]
    env: Vec<(String, String)>,
    /// Directory in which the command runs
    #[arg(long, value_name = "DIR", conflicts_with = "url")]
    cwd: Option<String>,
    /// Payload as JSON: the text, `@FILE`, or `-` for standard input
    #[arg(long, value_name = "JSON")]
    payload: Option<String>,
    /// Queue to wait in
    #[arg(long, value_name = "QUEUE")]
    queue: Option<String>,
    /// Priority of the jobs
    #[arg(long, value_name = "PRIORITY", value_parser = one_of(Priority::ALL, Priority::as_str))]
    priority: Option<Priority>,
    /// Number of retries after the first attempt
    #[arg(long, value_name = "N", value_parser = whole(0..=u32::MAX), allow_negative_numbers = true)]
    max_retries: Option<u32>,
    /// How long an attempt may take
    #[arg(long, value_name = "DURATION")]
    timeout: Option<Span>,
    /// Label for finding the jobs; may be repeated
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
}

impl WorkOptions {
    /// The job, changed by the options.
    pub fn applied_to(self, job: SubmitJob) -> Result<SubmitJob, CommandError> {
        let target = self.target(job.target)?;
        let payload = match self.payload {
            Some(payload) => Some(json_argument("--payload", &payload)?),
            None => job.payload,
        };
        let retry = match self.max_retries {
            Some(retries) => Some(Retry { max_retries: Some(retries), ..job.retry.unwrap_or_default() }),
            None => job.retry,
        };
        Ok(SubmitJob {
            job_type: self.job_type.unwrap_or(job.job_type),
            target,
            payload,
            queue: self.queue.or(job.queue),
            priority: self.priority.or(job.priority),
            retry,
            timeout: self.timeout.or(job.timeout),
            tags: if self.tags.is_empty() { job.tags } else { Some(self.tags) },
            ..job
        })
    }

    fn target(&self, before: Option<Target>) -> Result<Option<Target>, CommandError> {
        if self.url.is_none() && self.method.is_none() && self.headers.is_empty() {
            let command = match &before {
                Some(Target::Process(process)) => Some(process.clone()),
                _ => None,
            };
            let (words, env, cwd) = (self.command.clone(), self.env.clone(), self.cwd.clone());
            let process = ProcessOptions { command: words, env, cwd };
            return Ok(process.applied_to(command)?.map(Target::Process).or(before));
        }
        let mut http = match (before, &self.url) {
            (Some(Target::Http(http)), _) => http,
            (_, Some(url)) => HttpTarget { url: url.clone(), method: "POST".into(), headers: [].into() },
            (_, None) => {
                let detail = "--method and --header need --url";
                return Err(CommandError::BadInput(detail.into()));
            }
        };
        if let Some(url) = &self.url {
            http.url.clone_from(url);
        }
        if let Some(method) = &self.method {
            http.method = method.to_uppercase();
        }
        if !self.headers.is_empty() {
            http.headers = self.headers.iter().cloned().collect();
        }
        Ok(Some(Target::Http(http)))
    }
}
