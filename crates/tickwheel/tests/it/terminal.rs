//! Runs the real program on a terminal of a certain width, which `script` makes.

use std::process::Command;

use crate::program::{Run, run_with_input, tickwheel};

/// Runs the program on a terminal that is `columns` wide and on which somebody types `input`. What it says anywhere is
/// its standard output.
pub fn on_terminal(columns: u16, server: &str, args: &[&str], input: &str) -> Run {
    let program = tickwheel(args);
    let words: Vec<String> = std::iter::once(program.get_program())
        .chain(program.get_args())
        .map(|word| format!("'{}'", word.to_str().expect("UTF-8").replace('\'', "'\\''")))
        .collect();
    let line = format!("stty cols {columns} rows 40; exec {}", words.join(" "));
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
    script.env("TICKWHEEL_SERVER", server).env("NO_COLOR", "1").env("TZ", "UTC").env_remove("COLUMNS");
    let run = run_with_input(&mut script, input);
    Run { stdout: run.stdout.replace('\r', ""), ..run }
}

/// The widest line.
pub fn width(text: &str) -> usize {
    text.lines().map(|line| line.chars().count()).max().unwrap_or_default()
}
