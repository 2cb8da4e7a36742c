//! The small programs between the server and a command. The server starts itself again for each attempt.
//!
//! ```text
//!   server ──socket──▶ supervisor ──▶ starter, which becomes the command ──▶ whatever the command starts
//! ```
//! The **supervisor** outlives the command: it tells the server how the command ended, and sees to it that nothing the
//! command started is left behind, however it was started. If the server drops the attempt or dies, the socket closes,
//! and the supervisor ends the command. The **starter** takes on the user, the limits and the directory, and then
//! becomes the command: no Rust code may run between fork and exec without `unsafe`, so it runs after an exec of ours.
//!
//! Both are single-threaded and synchronous, and hold no file but those they need.

mod children;
mod message;
mod starter;
mod supervisor;

use std::process::ExitCode;

pub(crate) use message::{Launch, Limits, Message, UserIds};

/// The word that makes this program a supervisor.
pub(crate) const SUPERVISE: &str = "internal-launch";
/// The word that makes it a starter.
const START: &str = "internal-start";

/// Does what a launcher does if the command line asks for it. A program whose executor is to start processes calls
/// this before anything else: before it starts threads, and before it reads its command line.
pub fn run_if_asked() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    let word = args.next()?;
    if word == SUPERVISE {
        Some(supervisor::run())
    } else if word == START {
        Some(starter::run(args))
    } else {
        None
    }
}
