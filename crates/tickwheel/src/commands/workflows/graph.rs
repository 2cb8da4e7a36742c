//! `tickwheel workflows graph`: a diagram as text, for programs that draw it.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tickwheel_protocol::workflow::{SubmitWorkflow, Workflow};
use tickwheel_protocol::workflow_graph;

use super::CommandContext;
use crate::cli::whole;
use crate::commands::declared::workflows;
use crate::failure::CommandError;
use crate::output::plain_lines;

/// The language of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Language {
    /// Mermaid, for Markdown
    Mermaid,
    /// Graphviz
    Dot,
}

/// Options of `workflows graph`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tickwheel workflows graph etl\n  \
    tickwheel workflows graph -f etl.yaml --format dot | dot -Tsvg > etl.svg")]
pub struct GraphArgs {
    /// Name of the workflow
    #[arg(value_name = "NAME", required_unless_present = "file", conflicts_with = "file")]
    name: Option<String>,
    /// Version of the workflow [default: the latest]
    #[arg(long, value_name = "N", requires = "name", value_parser = whole(1..=u32::MAX), allow_negative_numbers = true)]
    version: Option<u32>,
    /// File with one workflow; no server is needed
    #[arg(short = 'f', long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Language to print
    #[arg(long, value_enum, value_name = "LANGUAGE", default_value = "mermaid")]
    format: Language,
}

/// Prints the graph.
pub async fn run(args: GraphArgs, context: &CommandContext) -> Result<(), CommandError> {
    let workflow = match (&args.name, args.file) {
        (_, Some(file)) => declared(file)?,
        (Some(name), None) => stored(name, args.version, context).await?,
        (None, None) => unreachable!("the parser asks for one of them"),
    };
    let drawn = match args.format {
        Language::Mermaid => workflow_graph::mermaid(&workflow),
        Language::Dot => workflow_graph::dot(&workflow),
    };
    if context.output.json {
        let text = serde_json::to_string(&drawn).map_err(anyhow::Error::from)?;
        return Ok(context.output.print(&text)?);
    }
    Ok(context.output.print(&plain_lines(&drawn))?)
}

async fn stored(
    name: &str,
    version: Option<u32>,
    context: &CommandContext,
) -> Result<SubmitWorkflow, CommandError> {
    let version = version.map(|version| version.to_string());
    let call = context.client.get(&["workflows", name]).query("version", version.as_deref());
    Ok(call.send().await?.read::<Workflow>()?.definition)
}

fn declared(file: PathBuf) -> Result<SubmitWorkflow, CommandError> {
    let name = file.display().to_string();
    match workflows::read(&[file])?.as_slice() {
        [workflow] => workflow.definition(),
        _ => Err(CommandError::BadInput(format!("{name}: a graph is drawn of one workflow"))),
    }
}
