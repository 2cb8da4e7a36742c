//! `tickwheel jobs submit`: one job, from options or from a file. Many jobs are handled by `batch`.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use http::StatusCode;
use tickwheel_protocol::job::JsonObject;
use tickwheel_protocol::{
    Backoff, Delivery, HttpTarget, Job, Label, Labels, Priority, Retry, Span, Status, SubmitJob, Target,
    Time, Why,
};

use super::{CommandContext, batch, wait};
use crate::cli::{one_of, part, whole};
use crate::commands::input::{header, json_argument, json_text, label, read_file};
use crate::commands::process::{ProcessOptions, variable};
use crate::commands::{ids, times};
use crate::failure::CommandError;
use crate::output::plain;

const BACKOFFS: &[Backoff] = &[Backoff::Fixed, Backoff::Linear, Backoff::Exponential];

const NO_ADDRESS: &str = "use --url to call a URL, or `-- COMMAND` to run a command, instead";
const EXAMPLES: &str = "Examples:\n  \
    tickwheel jobs submit send_email --url https://svc/run --payload '{\"to\":\"ann\"}' --delay 5m\n  \
    tickwheel jobs submit report --url https://svc/report --at 'tomorrow 9:00'\n  \
    tickwheel jobs submit report --url https://svc/report --wait=1m\n  \
    tickwheel jobs submit backup --timeout 2h -- /usr/bin/backup --full\n  \
    tickwheel jobs submit --batch jobs.jsonl";

/// Options of `jobs submit`.
#[derive(Debug, Args)]
#[command(after_help = format!("{}\n\n{EXAMPLES}", times::FORMS))]
pub struct SubmitArgs {
    /// Kind of work: the name of the handler
    #[arg(value_name = "TYPE", required_unless_present_any = ["file", "batch"])]
    job_type: Option<String>,
    /// Read the job from a JSON file (`-` for standard input)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["job_type", "batch", "JobOptions"])]
    file: Option<PathBuf>,
    /// Submit many jobs, one JSON object per line (`-` for standard input)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["job_type", "wait", "JobOptions"])]
    batch: Option<PathBuf>,
    /// Wait until the job has ended, for up to this long; exits with 1 unless it completed
    #[arg(long, value_name = "DURATION", num_args = 0..=1, require_equals = true)]
    wait: Option<Option<Span>>,
    #[command(flatten)]
    job: JobOptions,
}

/// The fields of a job.
#[derive(Debug, Args)]
#[group(id = "JobOptions", multiple = true)]
struct JobOptions {
    /// URL to call [default: a worker executes the job]
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// HTTP method [default: POST]
    #[arg(long, value_name = "METHOD", requires = "url")]
    method: Option<String>,
    /// Header to send; may be repeated
    #[arg(long = "header", value_name = "NAME:VALUE", requires = "url", value_parser = header)]
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
    /// Start after this delay, such as 30s, 5m, 4h
    #[arg(long, value_name = "DURATION", conflicts_with = "at")]
    delay: Option<Span>,
    /// Start at this time, such as 'tomorrow 9:00'
    #[arg(long, value_name = "TIME", value_parser = times::appointment)]
    at: Option<Time>,
    /// Label that a worker must have to execute the job, such as site=dmz; may be repeated
    #[arg(long = "requires", value_name = "NAME=VALUE", value_parser = label)]
    requires: Vec<(String, Label)>,
    /// Ids of jobs that must complete first, separated by commas; may be repeated
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    depends_on: Vec<String>,
    /// Queue to wait in
    #[arg(long, value_name = "QUEUE")]
    queue: Option<String>,
    /// Priority of the job
    #[arg(long, value_name = "PRIORITY", value_parser = one_of(Priority::ALL, Priority::as_str))]
    priority: Option<Priority>,
    /// Number of retries after the first attempt
    #[arg(long, value_name = "N", value_parser = whole(0..=u32::MAX), allow_negative_numbers = true)]
    max_retries: Option<u32>,
    /// How the delay grows from retry to retry
    #[arg(long, value_name = "BACKOFF", value_parser = one_of(BACKOFFS, backoff_word))]
    backoff: Option<Backoff>,
    /// Delay before the first retry
    #[arg(long, value_name = "DURATION")]
    retry_delay: Option<Span>,
    /// Longest delay between attempts
    #[arg(long, value_name = "DURATION")]
    retry_delay_max: Option<Span>,
    /// The exact delays between attempts, such as 1s,10s,1m
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with_all = ["backoff", "retry_delay"])]
    retry_delays: Option<Vec<Span>>,
    /// Fraction of itself (0 to 1) by which a delay may vary
    #[arg(long, value_name = "PART", value_parser = part, allow_negative_numbers = true)]
    jitter: Option<f64>,
    /// Do not retry failures whose code or message matches this pattern, in which * matches anything; may be repeated
    #[arg(long = "no-retry-on", value_name = "PATTERN")]
    no_retry_on: Vec<String>,
    /// How long an attempt may take
    #[arg(long, value_name = "DURATION")]
    timeout: Option<Span>,
    /// Whether the job executes at least once or at most once
    #[arg(long, value_name = "DELIVERY", value_parser = one_of(Delivery::ALL, Delivery::as_str))]
    delivery: Option<Delivery>,
    /// Label for finding the job; may be repeated
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Facts about the job as a JSON object: the text, `@FILE`, or `-` for standard input
    #[arg(long, value_name = "JSON")]
    metadata: Option<String>,
    /// Key of a concurrency limit (stored, not enforced yet)
    #[arg(long, value_name = "KEY")]
    concurrency_key: Option<String>,
    /// URL that receives the outcome
    #[arg(long, value_name = "URL")]
    callback_url: Option<String>,
    /// Key that makes it safe to repeat the command
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// Who submits it
    #[arg(long, value_name = "NAME")]
    created_by: Option<String>,
}

/// Submits the job and, if requested, waits for it.
pub async fn run(mut args: SubmitArgs, context: &CommandContext) -> Result<(), CommandError> {
    if let Some(path) = &args.batch {
        return batch::run(path, context).await;
    }
    args.job.depends_on = ids::all_whole(ids::Kind::Job, &args.job.depends_on, context).await?;
    let body = match (&args.file, args.job_type) {
        (Some(path), _) => json_text(&path.display().to_string(), &read_file(path)?)?.get().to_owned(),
        (None, job_type) => {
            let job = args.job.into_job(job_type.unwrap_or_default())?;
            serde_json::to_string(&job).context("cannot write the job as JSON")?
        }
    };
    let answer = context.client.post(&["jobs"]).body(body).send().await?;
    let job: Job = answer.read()?;
    if answer.status == StatusCode::OK {
        context.output.note("this idempotency key was used before: this is the first job");
    }
    match args.wait {
        Some(timeout) => {
            context.output.note(&format!("waiting for job {}", job.id));
            wait::wait_and_show(&job.id.to_string(), timeout.map(Span::as_duration), context).await
        }
        None => {
            if let Some(note) = when_it_runs(&job, context).await {
                context.output.note(&note);
            }
            context.print(&answer, |_| Ok(job.id.to_string()))
        }
    }
}

async fn when_it_runs(job: &Job, context: &CommandContext) -> Option<String> {
    match job.status {
        Status::Pending => Some("it runs once the jobs it depends on have completed".into()),
        Status::Blocked => {
            let why = format!("tickwheel jobs why {}", job.id);
            Some(format!("it is blocked: a job it depends on failed or was cancelled; see `{why}`"))
        }
        _ => {
            let later = job.next_run_at.filter(|at| !times::is_soon(*at));
            let later = later.map(|at| format!("it runs {}", times::told(at)));
            let has_target = !matches!(job.target, Target::Worker(_));
            match later {
                later if has_target && job.requires.is_empty() => later,
                None => Some(who_runs_it(job, context).await),
                Some(later) if has_target => {
                    Some(format!("{later}, by a worker with the labels it requires"))
                }
                Some(later) => Some(format!("{later}, by a worker: {NO_ADDRESS}")),
            }
        }
    }
}

/// A job without a target, or with labels, waits for a worker. The server knows whether there is one.
async fn who_runs_it(job: &Job, context: &CommandContext) -> String {
    let why = context.client.get(&["jobs", &job.id.to_string(), "why"]).send().await;
    let hint = match job.target {
        Target::Worker(_) => format!("; {NO_ADDRESS}"),
        _ => String::new(),
    };
    match why.and_then(|answer| answer.read::<Why>()) {
        Ok(why) if why.code == "unroutable" => {
            format!("it waits for a worker: {}{hint}", plain(&why.sentence))
        }
        Ok(why) => plain(&why.sentence),
        Err(_) => format!("it waits for a worker{hint}"),
    }
}

impl JobOptions {
    fn into_job(self, job_type: String) -> Result<SubmitJob, CommandError> {
        let retry = self.retry();
        let payload = self.payload.map(|payload| json_argument("--payload", &payload)).transpose()?;
        let metadata = self.metadata.map(|metadata| json_object("--metadata", &metadata)).transpose()?;
        let http = self.url.map(|url| {
            let method = self.method.map_or_else(|| "POST".into(), |method| method.to_uppercase());
            Target::Http(HttpTarget { url, method, headers: self.headers.into_iter().collect() })
        });
        let process = ProcessOptions { command: self.command, env: self.env, cwd: self.cwd };
        let target = http.or(process.applied_to(None)?.map(Target::Process));
        Ok(SubmitJob {
            job_type,
            target,
            payload,
            execute_at: self.at,
            delay: self.delay,
            requires: Some(self.requires.into_iter().collect()).filter(|labels: &Labels| !labels.is_empty()),
            depends_on: Some(self.depends_on).filter(|ids| !ids.is_empty()),
            queue: self.queue,
            priority: self.priority,
            retry,
            timeout: self.timeout,
            delivery: self.delivery,
            tags: Some(self.tags).filter(|tags| !tags.is_empty()),
            metadata,
            concurrency_key: self.concurrency_key,
            callback_url: self.callback_url,
            idempotency_key: self.idempotency_key,
            created_by: self.created_by,
        })
    }

    fn retry(&self) -> Option<Retry> {
        let retry = Retry {
            max_retries: self.max_retries,
            backoff: self.backoff,
            initial_delay: self.retry_delay,
            max_delay: self.retry_delay_max,
            jitter: self.jitter,
            delays: self.retry_delays.clone(),
            non_retryable: Some(self.no_retry_on.clone()).filter(|patterns| !patterns.is_empty()),
        };
        Some(retry).filter(|retry| *retry != Retry::default())
    }
}

fn json_object(name: &str, argument: &str) -> Result<JsonObject, CommandError> {
    let json = json_argument(name, argument)?;
    serde_json::from_str(json.get())
        .map_err(|_| CommandError::BadInput(format!("{name} is not a JSON object")))
}

fn backoff_word(backoff: Backoff) -> &'static str {
    match backoff {
        Backoff::Fixed => "fixed",
        Backoff::Linear => "linear",
        Backoff::Exponential => "exponential",
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};
    use crate::commands::jobs::JobsCommand;

    fn parse(line: &[&str]) -> Result<SubmitArgs, clap::Error> {
        let cli = Cli::try_parse_from(["tickwheel", "jobs", "submit"].iter().chain(line))?;
        let Command::Jobs(JobsCommand::Submit(args)) = cli.command else {
            unreachable!("the line says submit")
        };
        Ok(*args)
    }

    fn job(line: &[&str]) -> serde_json::Value {
        let args = parse(line).unwrap();
        let job = args.job.into_job(args.job_type.unwrap()).unwrap();
        serde_json::to_value(job).unwrap()
    }

    #[test]
    fn what_is_not_said_is_left_to_the_server() {
        assert_eq!(job(&["send_email"]), serde_json::json!({"type": "send_email"}));
    }

    #[test]
    fn options_become_the_fields_of_the_job() {
        let job = job(&[
            "t",
            "--url=http://x/",
            "--header",
            "A: b:c",
            "--payload",
            "[1]",
            "--delay=5m",
            "--priority=high",
            "--retry-delays=1s,10s",
            "--tag=a",
            "--tag=b",
            "--timeout=1.5",
            "--depends-on=x,y",
            "--depends-on",
            "z",
            "--requires=site=dmz",
            "--requires=memory=16",
        ]);
        let expected = serde_json::json!({
            "type": "t",
            "target": {"http": {"url": "http://x/", "method": "POST", "headers": {"A": "b:c"}}},
            "payload": [1], "delay": "300s", "priority": "high", "tags": ["a", "b"], "timeout": "1500ms",
            "depends_on": ["x", "y", "z"], "requires": {"site": "dmz", "memory": 16},
        });
        for (field, value) in expected.as_object().unwrap() {
            assert_eq!(&job[field], value, "{field}");
        }
        assert_eq!(job["retry"]["delays"], serde_json::json!(["1s", "10s"]));
    }

    #[test]
    fn a_command_is_what_follows_two_dashes() {
        let job = job(&["t", "--env", "A=b=c", "--cwd=/srv", "--", "backup", "--full", "-v"]);
        let process = serde_json::json!({"command": ["backup", "--full", "-v"], "env": {"A": "b=c"}, "cwd": "/srv",
            "stdin": "payload"});
        assert_eq!(job["target"], serde_json::json!({ "process": process }));
    }

    #[test]
    fn a_job_comes_from_one_place_only() {
        for line in [
            &["--file=a.json", "t"][..],
            &["--file=a.json", "--batch=b.jsonl"],
            &["--file=a.json", "--queue=q"],
            &["--file=a.json", "--depends-on=x"],
            &["--batch=b.jsonl", "--wait"],
            &["t", "--delay=1s", "--at=2030-01-01T00:00:00Z"],
            &["t", "--method=PUT"],
            &["t", "--url=http://x/", "--", "ls"],
            &["t", "--cwd=/", "--url=http://x/"],
            &["--file=a.json", "--", "ls"],
            &[],
        ] {
            assert!(parse(line).is_err(), "{line:?}");
        }
        assert!(parse(&["--file=a.json", "--wait=5s"]).is_ok());
    }
}
