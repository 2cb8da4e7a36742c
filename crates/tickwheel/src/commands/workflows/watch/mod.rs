//! `tickwheel workflows watch`: shows a run until it has ended.
//!
//! On a terminal, a picture is redrawn in place. Elsewhere, each change is one line. The run is read repeatedly, so a
//! very short state may not be seen. If the server is away for a while, for example to restart, the command waits for
//! it.

mod changes;
mod picture;

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use clap::Args;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use tickwheel_client::{Answer, Error};
use tickwheel_protocol::workflow::WorkflowRun;

use self::picture::Picture;
use super::show::RunToLookAt;
use super::{CommandContext, view};
use crate::commands::pretty;
use crate::failure::CommandError;
use crate::output::{Output, now};

/// The shortest time between two reads.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// A slow answer makes the reads rarer by this factor.
const SHARE_OF_ITS_TIME: u32 = 4;
/// How long a server may be away.
const AWAY_MAX: Duration = Duration::from_secs(60);

/// Options of `workflows watch`.
#[derive(Debug, Args)]
#[command(
    after_help = "On a terminal, the picture is redrawn in place. Elsewhere, each change is one line. Ctrl-C stops the display, not the run.\n\n\
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

/// The run that is being read.
struct Watched<'a> {
    id: &'a str,
    context: &'a CommandContext,
    last_answer: Option<Instant>,
}

impl Watched<'_> {
    /// The run as it is now. Waits for the server only if it has answered before.
    async fn look(&mut self) -> Result<Answer, CommandError> {
        loop {
            let answer = self.context.client.get(&["workflow-runs", self.id]).send().await;
            match answer {
                Err(Error::NoConnection { .. })
                    if self.last_answer.is_some_and(|at| at.elapsed() < AWAY_MAX) =>
                {
                    tokio::time::sleep(LOOK_AGAIN).await;
                }
                answer => {
                    self.last_answer = Some(Instant::now());
                    return Ok(answer?);
                }
            }
        }
    }
}

/// How the run is shown.
enum Teller {
    /// As a picture that is redrawn.
    Drawn(Canvas),
    /// As one line per change.
    Lines { output: Output, before: Option<Box<WorkflowRun>> },
    /// Only its end, as JSON.
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
            Self::Json(output) => output.print(&pretty(answer)?)?,
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
