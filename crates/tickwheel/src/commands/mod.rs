//! The commands: `commands/<noun>/<verb>.rs`.

pub mod bench;
pub mod calendars;
pub mod completions;
pub mod config;
mod consent;
pub mod cron;
pub mod dead_letters;
pub mod declared;
mod each;
mod ids;
pub mod import;
mod input;
pub mod jobs;
mod local;
mod paging;
mod process;
pub mod queues;
pub mod schedules;
pub mod serve;
mod switch;
mod times;
mod waiting;
pub mod worker;
pub mod workers;
pub mod workflows;

use serde_json::value::RawValue;
use tickwheel_client::{Answer, Client, ClientOptions};

use crate::cli::{Cli, Command, Connection};
use crate::failure::CommandError;
use crate::output::{self, Output};

/// A list of many jobs with their payloads is a long answer.
const ANSWER_BYTES_MAX: usize = 1 << 30;

/// Runs the command.
pub async fn run(cli: Cli) -> Result<(), CommandError> {
    let connection = &cli.connection;
    match cli.command {
        Command::Serve(args) => serve::run(*args).await,
        Command::Worker(args) => worker::run(*args, connection).await,
        Command::Jobs(command) => jobs::run(command, &CommandContext::open(connection)?).await,
        Command::Schedules(command) => schedules::run(command, &CommandContext::open(connection)?).await,
        Command::Workflows(command) => workflows::run(command, &CommandContext::open(connection)?).await,
        Command::Calendars(command) => calendars::run(command, &CommandContext::open(connection)?).await,
        Command::Diff(args) => declared::diff::run(args, &CommandContext::open(connection)?).await,
        Command::Apply(args) => declared::apply::run(args, &CommandContext::open(connection)?).await,
        Command::Import(command) => import::run(command, &connection.output()),
        Command::DeadLetters(command) => dead_letters::run(command, &CommandContext::open(connection)?).await,
        Command::Queues(args) => queues::run(args, &CommandContext::open(connection)?).await,
        Command::Workers(args) => workers::run(args, &CommandContext::open(connection)?).await,
        Command::Halt => switch::run(switch::Switch::Halt, &CommandContext::open(connection)?).await,
        Command::Resume => switch::run(switch::Switch::Resume, &CommandContext::open(connection)?).await,
        Command::Cron(command) => cron::run(command, &connection.output()),
        Command::Config(command) => config::run(&command, &connection.output()),
        Command::Bench(args) => bench::run(args, &connection.output()).await,
        Command::Completions(args) => completions::run(&args, &connection.output()),
    }
}

/// What every client command needs: a server to talk to, and a way to print its answers.
pub struct CommandContext {
    /// Talks to the server.
    pub client: Client,
    /// Prints answers.
    pub output: Output,
}

impl CommandContext {
    fn open(connection: &Connection) -> Result<Self, CommandError> {
        let client = Client::with_options(ClientOptions {
            servers: vec![connection.server()],
            api_key: connection.api_key(),
            answer_bytes_max: ANSWER_BYTES_MAX,
            ..ClientOptions::default()
        })?;
        Ok(Self { client, output: connection.output() })
    }

    /// Prints an answer: as it is with `--json`, otherwise as `for_people` formats it.
    pub fn print(
        &self,
        answer: &Answer,
        for_people: impl FnOnce(&Output) -> Result<String, CommandError>,
    ) -> Result<(), CommandError> {
        let text = if self.output.json { pretty(answer)? } else { for_people(&self.output)? };
        Ok(self.output.print(&text)?)
    }
}

/// The answer as the server gave it, with line breaks.
fn pretty(answer: &Answer) -> Result<String, CommandError> {
    if answer.bytes().is_empty() {
        return Ok("null".into());
    }
    let text: Box<RawValue> = answer.read()?;
    Ok(output::pretty(text.get()))
}
