//! `tickwheel diff` and `tickwheel apply`: schedules, calendars and workflows as files declare them.
//!
//! Both make the same [`plan`] and show it; `diff` ends there. What the files do not mention gets its default, whatever
//! it was before. Applying the same files a second time changes nothing.

pub mod apply;
mod calendars;
pub mod diff;
mod fields;
mod files;
mod firings;
mod format;
mod plan;
mod refusals;
mod report;
pub mod workflows;

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use tickwheel_protocol::Span;

use self::firings::Horizon;
pub use self::format::Format;
use self::plan::{Plan, Scope};
use super::CommandContext;
use crate::failure::CommandError;
use crate::output::{now, pretty};

const HORIZON_MAX: Span = Span::from_millis(366 * 24 * 3_600_000);

/// The files, and how to compare them.
#[derive(Debug, Args)]
pub struct Files {
    /// File with schedules, calendars and workflows (.yaml, .yml, .toml or .json), a directory of them, or `-` for YAML
    /// on standard input; may be repeated
    #[arg(short = 'f', long = "file", value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Also delete every schedule that is in none of the files, and every such workflow if the files have a section for
    /// workflows
    #[arg(long)]
    prune: bool,
    /// How far ahead to compare firings, up to 366d
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = horizon)]
    horizon: Span,
}

fn horizon(text: &str) -> Result<Span, String> {
    let span: Span = text.parse().map_err(|error: tickwheel_protocol::time::NotASpan| error.to_string())?;
    if span > HORIZON_MAX { Err(format!("must not be longer than {HORIZON_MAX}")) } else { Ok(span) }
}

impl Files {
    async fn plan(&self, context: &CommandContext) -> Result<Plan, CommandError> {
        let declared = files::read(&self.files)?;
        let horizon = Horizon { after: now(), length: self.horizon };
        plan::plan(&declared, Scope { horizon, prune: self.prune }, context).await
    }

    fn reads_standard_input(&self) -> bool {
        self.files.iter().any(|file| file == Path::new("-"))
    }
}

/// A plan as JSON.
#[derive(Serialize)]
struct Told<'a> {
    /// Whether there are differences.
    changes: bool,
    /// Whether the changes were made.
    applied: bool,
    #[serde(flatten)]
    plan: &'a Plan,
}

/// Prints the plan: as JSON, or as a report.
fn show(plan: &Plan, applied: bool, context: &CommandContext) -> Result<(), CommandError> {
    let output = &context.output;
    if output.json {
        let told = Told { changes: plan.changes(), applied, plan };
        let text = serde_json::to_string(&told).map_err(anyhow::Error::from)?;
        return Ok(output.print(&pretty(&text))?);
    }
    Ok(output.print(&report::report(plan, output))?)
}
