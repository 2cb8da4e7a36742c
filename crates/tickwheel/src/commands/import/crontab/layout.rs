//! Whether there is a user before each command. Where nothing says so, it is guessed from the name of the file and from what stands
//! in the sixth column.

use std::collections::HashSet;
use std::path::Path;

use super::line::{self, Line};

/// How the lines of a crontab are built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Time, command.
    User,
    /// Time, user, command.
    System,
}

/// The likelier one. A user's own crontab is taken for a system one only if every command begins with the name of a known user.
pub fn guess(file: &Path, text: &str, known_users: &HashSet<String>) -> Layout {
    if file == Path::new("/etc/crontab") || file.starts_with("/etc/cron.d") {
        return Layout::System;
    }
    if file.starts_with("/var/spool/cron") {
        return Layout::User;
    }
    let has_user = |rest: &str| {
        let (user, command) = line::first_word(rest);
        known_users.contains(user) && !command.is_empty()
    };
    let mut entries = text.lines().filter_map(|text| match line::read(text) {
        Ok(Line::Entry { rest, .. }) => Some(rest),
        _ => None,
    });
    match entries.next() {
        Some(first) if has_user(first) && entries.all(has_user) => Layout::System,
        _ => Layout::User,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guessed(file: &str, text: &str) -> Layout {
        let users = ["root", "backup"].map(str::to_owned).into();
        guess(Path::new(file), text, &users)
    }

    #[test]
    fn the_place_of_a_file_tells_before_its_contents_do() {
        assert_eq!(guessed("/etc/crontab", "@daily run"), Layout::System);
        assert_eq!(guessed("/etc/cron.d/php", ""), Layout::System);
        assert_eq!(guessed("/var/spool/cron/crontabs/ann", "@daily root run"), Layout::User);
    }

    #[test]
    fn elsewhere_every_command_must_begin_with_a_known_user() {
        let system = "SHELL=/bin/sh\n17 * * * * root cd / && run\n@daily backup run -x\n";
        assert_eq!(guessed("-", system), Layout::System);
        assert_eq!(guessed("-", "17 * * * * root run\n@daily run -x\n"), Layout::User);
        // The name of a user alone is a command.
        assert_eq!(guessed("-", "@daily backup\n"), Layout::User);
        assert_eq!(guessed("-", "# nothing\n"), Layout::User);
    }
}
