//! `tickwheel completions`: prints a script that lets a shell complete our commands.

use clap::Args;
use clap_complete::Shell;

use crate::cli;
use crate::failure::CommandError;
use crate::output::Output;

/// Options of `completions`.
#[derive(Debug, Args)]
#[command(after_help = "For bash: tickwheel completions bash > /etc/bash_completion.d/tickwheel")]
pub struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Prints the script.
pub fn run(args: &CompletionsArgs, output: &Output) -> Result<(), CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut cli::tree(), "tickwheel", &mut script);
    Ok(output.print(&String::from_utf8_lossy(&script))?)
}
