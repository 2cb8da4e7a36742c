//! Runs an attempt as a process of this machine.
//!
//! [`policy`] says what may run, [`environment`] what it sees, [`verdict`] what its end means, [`output`] what becomes
//! of what it prints. The process itself belongs to a [supervisor](crate::launcher), a process of its own to which the
//! server holds a [`link`]. When the link is dropped, the supervisor ends the command and everything that it started:
//! first politely, then not. So a command ends with its timeout, with its job, and with its server.
//!
//! Deliberately not here: which user and which limits (the operator says), and keeping logs.

mod account;
mod environment;
mod link;
mod output;
mod policy;
mod verdict;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tickwheel_core::job::{ProcessTarget, Stdin};
use tickwheel_core::payload::Document;
use tickwheel_core::ports::{AttemptContext, Executor};
use tickwheel_core::settle::Outcome;
use tickwheel_core::{Failure, Target};
use tokio::time::{Instant, timeout_at};

pub use self::account::Account;
use self::link::{Link, Streams};
pub use self::output::{LINE_BYTES_MAX, NoSink, OutputSink, OutputStream};
use self::output::{Tail, read_all};
pub use self::policy::{Forbidden, ProcessPolicy};
use self::verdict::Ended;
use crate::launcher::{Launch, Limits, Message};

/// The clock of the runtime cannot count further than some centuries.
const TIMEOUT_MAX: Duration = Duration::from_secs(366 * 24 * 3600);
/// An attempt that is over its time is waited for so long: less than the engine waits for us.
const STOP_WAIT_MAX: Duration = Duration::from_millis(1_500);
/// How long what a command left behind may keep its streams open after its end.
const DRAIN_WAIT_MAX: Duration = Duration::from_secs(10);
/// What this machine lacked will not be there at once.
const NOT_SENT_PAUSE: Duration = Duration::from_secs(1);
/// How often the log is told of it.
const COMPLAINT_INTERVAL: Duration = Duration::from_secs(10);

/// How commands are run.
#[derive(Clone)]
pub struct ProcessExecutorOptions {
    /// The program that becomes supervisor and starter: one that calls [`run_if_asked`](crate::launcher::run_if_asked).
    pub launcher: PathBuf,
    /// What may run.
    pub policy: ProcessPolicy,
    /// Variables of the server's environment that commands get: names, or the beginning of one and a star.
    pub passed_on: Vec<String>,
    /// As whom commands run, if not as the server.
    pub account: Option<Account>,
    /// Bytes of memory that each process may use.
    pub memory_bytes_max: Option<u64>,
    /// Seconds of processor time that each process may use.
    pub cpu_seconds_max: Option<u64>,
    /// Files that each process may have open.
    pub open_files_max: Option<u64>,
    /// How much of each stream is kept: its end.
    pub output_bytes_max: usize,
    /// How long a command may take to end once it was asked to.
    pub stop_grace: Duration,
    /// Where its lines go.
    pub sink: Arc<dyn OutputSink>,
}

impl ProcessExecutorOptions {
    /// The defaults: every command, as the server's user, without limits; the last 64 KiB are kept.
    pub fn new(launcher: impl Into<PathBuf>) -> Self {
        Self {
            launcher: launcher.into(),
            policy: ProcessPolicy { commands: vec!["*".into()] },
            passed_on: Vec::new(),
            account: None,
            memory_bytes_max: None,
            cpu_seconds_max: None,
            open_files_max: None,
            output_bytes_max: 64 << 10,
            stop_grace: Duration::from_secs(1),
            sink: Arc::new(NoSink),
        }
    }
}

/// Runs commands.
pub struct ProcessExecutor {
    options: ProcessExecutorOptions,
    /// Who runs the server.
    own: Account,
    /// When the log was last told that nothing can be started.
    complained_at: Mutex<Option<Instant>>,
}

/// Why a command has not run to its end.
enum NotRun {
    /// Nobody could run it, or nobody may: nothing was started.
    Refused { failure: Failure, retryable: bool },
    /// This machine could not start it.
    NotStarted(String),
    /// Its supervisor died.
    Lost,
}

impl ProcessExecutor {
    /// An executor with these options.
    pub fn new(options: ProcessExecutorOptions) -> Self {
        Self { options, own: Account::own(), complained_at: Mutex::new(None) }
    }

    /// What is to be run, if it may.
    fn launch_of(&self, attempt: &AttemptContext, target: &ProcessTarget) -> Result<Launch, NotRun> {
        let refused = |code: &str, message: String, retryable| NotRun::Refused {
            failure: Failure::new(code, message),
            retryable,
        };
        let ProcessExecutorOptions { policy, passed_on, account, .. } = &self.options;
        let variables = target.env.iter().map(|(name, _)| name.as_str());
        policy
            .check(&target.command, variables)
            .map_err(|forbidden| refused("command_forbidden", forbidden.reason, false))?;
        let account = account.as_ref().unwrap_or(&self.own);
        let env = environment::environment(attempt, target, passed_on, account);
        let called = target.command.first().map_or("", String::as_str);
        let program = policy
            .resolve(called, env.get("PATH").map(String::as_str))
            .ok_or_else(|| refused("cannot_run", format!("there is no program {called:?} in PATH"), true))?;
        Ok(Launch {
            program,
            command: target.command.clone(),
            env,
            cwd: target.cwd.clone().unwrap_or_else(|| account.home().to_owned()),
            stdin_len: 0,
            grace_ms: u64::try_from(self.options.stop_grace.as_millis()).unwrap_or(u64::MAX),
            user: self.options.account.as_ref().filter(|account| !account.is_own()).map(Account::ids),
            limits: Limits {
                memory_bytes: self.options.memory_bytes_max,
                cpu_seconds: self.options.cpu_seconds_max,
                open_files: self.options.open_files_max,
            },
        })
    }

    async fn run_command(&self, attempt: &AttemptContext, target: &ProcessTarget) -> Result<Outcome, NotRun> {
        let give_up_at = Instant::now() + attempt.job.spec.timeout().min(TIMEOUT_MAX);
        let stdin = stdin_of(target.stdin, &attempt.payload);
        let launch = Launch { stdin_len: stdin.len(), ..self.launch_of(attempt, target)? };
        let not_started = |error: std::io::Error| NotRun::NotStarted(error.to_string());
        let (mut link, mut streams) = Link::open(&self.options.launcher).map_err(not_started)?;
        let (mut stdout, mut stderr) =
            (Tail::new(self.options.output_bytes_max), Tail::new(self.options.output_bytes_max));
        let ended = {
            let reading = self.read(attempt, &mut streams, &mut stdout, &mut stderr);
            let running = self.run_to_end(&mut link, &launch, &stdin, give_up_at);
            run_while_reading(running, reading, give_up_at).await?
        };
        Ok(match ended {
            Some(ended) => verdict::outcome(ended, &target.exit_codes, &mut stdout, &mut stderr),
            None => Outcome::TimedOut,
        })
    }

    /// Until the command has ended by itself; or, after its time is over, until nothing of it is left.
    async fn run_to_end(
        &self,
        link: &mut Link,
        launch: &Launch,
        stdin: &[u8],
        give_up_at: Instant,
    ) -> Result<Option<Ended>, NotRun> {
        let conversation = async {
            link.launch(launch, stdin).await.map_err(|error| NotRun::NotStarted(error.to_string()))?;
            let mut is_started = false;
            loop {
                match link.next().await {
                    Ok(Some(Message::Started(_))) => is_started = true,
                    Ok(Some(Message::Exited(code))) => return Ok(Ended::Exited(code)),
                    Ok(Some(Message::Signalled(signal))) => return Ok(Ended::Signalled(signal)),
                    Ok(Some(Message::CannotRun(message))) => {
                        let failure = Failure::new("cannot_run", message);
                        return Err(NotRun::Refused { failure, retryable: true });
                    }
                    Ok(Some(Message::NotStarted(reason))) => return Err(NotRun::NotStarted(reason)),
                    Ok(None) | Err(_) if is_started => return Err(NotRun::Lost),
                    Ok(None) | Err(_) => {
                        return Err(NotRun::NotStarted("its supervisor ended at once".into()));
                    }
                }
            }
        };
        match timeout_at(give_up_at, conversation).await {
            Ok(Err(NotRun::Lost)) => {
                link.end_orphans();
                Err(NotRun::Lost)
            }
            Ok(ended) => ended.map(Some),
            Err(_) => {
                link.hang_up();
                let _ = timeout_at(Instant::now() + STOP_WAIT_MAX, link.closed()).await;
                Ok(None)
            }
        }
    }

    async fn read(
        &self,
        attempt: &AttemptContext,
        streams: &mut Streams,
        stdout: &mut Tail,
        stderr: &mut Tail,
    ) {
        let sink = &self.options.sink;
        // A stream that cannot be read has ended.
        let _ = tokio::join!(
            read_all(&mut streams.stdout, stdout, |line| sink.line(attempt, OutputStream::Stdout, line)),
            read_all(&mut streams.stderr, stderr, |line| sink.line(attempt, OutputStream::Stderr, line)),
        );
    }

    /// Once for all attempts that this happens to, and again while it lasts.
    fn complain(&self, reason: &str) {
        let mut complained_at = self.complained_at.lock().unwrap_or_else(PoisonError::into_inner);
        if complained_at.is_none_or(|at| at.elapsed() >= COMPLAINT_INTERVAL) {
            *complained_at = Some(Instant::now());
            tracing::warn!(reason, "no process can be started, jobs go back");
        }
    }
}

#[async_trait]
impl Executor for ProcessExecutor {
    async fn run(&self, attempt: &AttemptContext) -> Outcome {
        let Target::Process(target) = &attempt.job.spec.target else {
            let failure = Failure::new("invalid_target", "the job has no command");
            return Outcome::Failed { failure, retryable: false, retry_after: None };
        };
        match self.run_command(attempt, target).await {
            Ok(outcome) => outcome,
            Err(NotRun::Refused { failure, retryable }) => {
                Outcome::Failed { failure, retryable, retry_after: None }
            }
            Err(NotRun::NotStarted(reason)) => {
                self.complain(&reason);
                let reason = format!("no process could be started: {reason}");
                Outcome::NotSent { reason, again_in: NOT_SENT_PAUSE }
            }
            Err(NotRun::Lost) => {
                let message = "the process that supervised the command died, and the command with it";
                let failure = Failure::new("process_lost", message);
                Outcome::Failed { failure, retryable: true, retry_after: None }
            }
        }
    }
}

/// Reads until the command has ended, and then until its streams have, within limits: how it ended is known already.
async fn run_while_reading(
    running: impl Future<Output = Result<Option<Ended>, NotRun>>,
    reading: impl Future<Output = ()>,
    give_up_at: Instant,
) -> Result<Option<Ended>, NotRun> {
    tokio::pin!(running, reading);
    let mut is_read = false;
    let ended = loop {
        tokio::select! {
            biased;
            ended = &mut running => break ended,
            () = &mut reading, if !is_read => is_read = true,
        }
    };
    if matches!(ended, Ok(Some(_))) && !is_read {
        let wait_until = (Instant::now() + DRAIN_WAIT_MAX).min(give_up_at + STOP_WAIT_MAX);
        let _ = timeout_at(wait_until, reading).await;
    }
    ended
}

fn stdin_of(stdin: Stdin, payload: &Document) -> Vec<u8> {
    let text = match payload {
        Document::Whole(text) => text.as_str().to_owned(),
        Document::Pieces(pieces) => pieces.iter().map(|piece| &**piece).collect(),
    };
    match stdin {
        Stdin::None => Vec::new(),
        _ if text.trim() == "null" => Vec::new(),
        Stdin::Payload => text.into(),
        Stdin::Text => serde_json::from_str::<String>(&text).unwrap_or(text).into(),
    }
}
