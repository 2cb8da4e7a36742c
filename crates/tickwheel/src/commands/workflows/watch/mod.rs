//! `tickwheel workflows watch`: a run as it goes on, until its end.
//!
//! On a terminal a picture is drawn and redrawn in its place; anywhere else each change is a line. The server is asked again and again: what was
//! there for a moment only may not be seen. A server that is away for a while, to be restarted, is waited for.

mod changes;
mod picture;

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use clap::Args;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use tickwheel_protocol::workflow::WorkflowRun;

use self::picture::Picture;
use super::show::RunToLookAt;
use super::{CommandContext, view};
use crate::client::Answer;
use crate::failure::CommandError;
use crate::output::{Output, now};

/// How often the server is asked at the most.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// An answer that takes long is asked for so much more rarely.
const SHARE_OF_ITS_TIME: u32 = 4;
/// How long a server may be away.
const AWAY_MAX: Duration = Duration::from_secs(60);

/// Options of `workflows watch`.
#[derive(Debug, Args)]
#[command(
    after_help = "On a terminal the picture is redrawn in place; otherwise each change is a line. Ctrl-C stops the watching, not the run.\n\n\
    Example: tickwheel workflows watch etl"
)]
pub struct WatchArgs {
    #[command(flatten)]
    run: RunToLookAt,
}

/// Watches a run.
pub async fn run(args: WatchArgs, context: &CommandContext) -> Result<(), CommandError> {
    watch(&args.run.id(context).await?, context).await
}

/// Watches the run with this id; fails unless it completes.
pub async fn watch(id: &str, context: &CommandContext) -> Result<(), CommandError> {
    let mut teller = Teller::new(context.output);
    let mut watched = Watched { id, context, last_answer: None };
    loop {
        let asked = Instant::now();
        let answer = watched.look().await?;
        let run: WorkflowRun = answer.read()?;
        teller.tell(&run)?;
        if run.status.is_terminal() {
            teller.end(&run, &answer)?;
            return view::verdict(&run);
        }
        tokio::time::sleep(LOOK_AGAIN.max(asked.elapsed() * SHARE_OF_ITS_TIME)).await;
    }
}

/// A run that is asked for.
struct Watched<'a> {
    id: &'a str,
    context: &'a CommandContext,
    last_answer: Option<Instant>,
}

impl Watched<'_> {
    /// The run as it is. Only a server that has answered before is waited for.
    async fn look(&mut self) -> Result<Answer, CommandError> {
        loop {
            let answer = self.context.client.get(&["workflow-runs", self.id]).send().await;
            match answer {
                Err(CommandError::NoConnection { .. })
                    if self.last_answer.is_some_and(|at| at.elapsed() < AWAY_MAX) =>
                {
                    tokio::time::sleep(LOOK_AGAIN).await;
                }
                answer => {
                    self.last_answer = Some(Instant::now());
                    return answer;
                }
            }
        }
    }
}

/// Who tells of the run.
enum Teller {
    /// A picture that is redrawn.
    Drawn(Canvas),
    /// A line for each change.
    Lines { output: Output, before: Option<Box<WorkflowRun>> },
    /// Only how it ended, for machines.
    Json(Output),
}

impl Teller {
    fn new(output: Output) -> Self {
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        match output.json {
            true => Self::Json(output),
            false if io::stdout().is_terminal() && !dumb => Self::Drawn(Canvas::new(output)),
            false => Self::Lines { output, before: None },
        }
    }

    fn tell(&mut self, run: &WorkflowRun) -> Result<(), CommandError> {
        match self {
            Self::Drawn(canvas) => canvas.draw(run),
            Self::Lines { output, before } => {
                for line in changes::between(before.as_deref(), run, now()) {
                    output.print(&line)?;
                }
                *before = Some(Box::new(run.clone()));
            }
            Self::Json(_) => {}
        }
        Ok(())
    }

    fn end(&self, run: &WorkflowRun, answer: &Answer) -> Result<(), CommandError> {
        match self {
            Self::Drawn(canvas) => canvas.leave(),
            Self::Lines { output, .. } => output.print(&picture::summary(run, now()))?,
            Self::Json(output) => output.print(&answer.pretty()?)?,
        }
        Ok(())
    }
}

/// Lines of a terminal that can be written again.
struct Canvas {
    output: Output,
    lines: MultiProgress,
    drawn: Vec<ProgressBar>,
}

impl Canvas {
    fn new(output: Output) -> Self {
        let lines = MultiProgress::with_draw_target(ProgressDrawTarget::stdout());
        Self { output, lines, drawn: Vec::new() }
    }

    fn draw(&mut self, run: &WorkflowRun) {
        let picture = Picture::of(run, now()).lines(&self.output);
        while self.drawn.len() < picture.len() {
            let style = ProgressStyle::with_template("{wide_msg}").expect("a template that is known");
            self.drawn.push(self.lines.add(ProgressBar::new_spinner().with_style(style)));
        }
        let texts = picture.into_iter().map(Some).chain(std::iter::repeat(None));
        for (line, text) in self.drawn.iter().zip(texts) {
            line.set_message(text.unwrap_or_default());
            line.tick();
        }
    }

    fn leave(&self) {
        self.drawn.iter().for_each(ProgressBar::abandon);
    }
}
