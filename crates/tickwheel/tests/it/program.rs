//! Runs the real program as a client and looks at what it says.

use std::io::Write;
use std::process::{Command, Output, Stdio};

/// What a run of the program came to.
#[derive(Debug)]
pub struct Run {
    /// Its exit code.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// The program with these arguments, and none of our own environment's settings.
pub fn tickwheel(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tickwheel"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("TICKWHEEL_") {
            command.env_remove(name);
        }
    }
    command.args(args).stdin(Stdio::null());
    command
}

/// Runs it to its end.
pub fn run(command: &mut Command) -> Run {
    finished(command.output().expect("the program was built together with this test"))
}

/// Runs it to its end with `input` as standard input.
pub fn run_with_input(command: &mut Command, input: &str) -> Run {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program was built together with this test");
    child
        .stdin
        .take()
        .expect("it is piped")
        .write_all(input.as_bytes())
        .expect("the program reads its input");
    finished(child.wait_with_output().expect("it was started"))
}

fn finished(output: Output) -> Run {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the program writes UTF-8");
    Run { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}
