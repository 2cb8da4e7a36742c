//! The reference of the command line is what `--help` says.

use clap::Command;

use crate::golden;

const OPENING: &str = "\
# Command line

<!-- Generated from the program's own --help. Rewrite it with: UPDATE_GOLDEN=1 cargo test -p tickwheel cli_help -->

Results go to standard output, everything else to standard error. Exit codes: 0 done, 1 the job or check failed,
2 bad usage or input, 3 no connection. The options under \"Talking to a server\" work with every command and are
listed only once.
";

fn reference() -> String {
    let mut tree = tickwheel::cli::tree().term_width(100);
    tree.build();
    let mut out = OPENING.to_owned();
    describe(&tree, "tickwheel", true, &mut out);
    out
}

fn describe(command: &Command, path: &str, with_globals: bool, out: &mut String) {
    let mut shown = command.clone().bin_name(path).term_width(100);
    if !with_globals {
        shown = shown.mut_args(|arg| if arg.is_global_set() { arg.hide(true) } else { arg });
    }
    let help = shown.render_long_help().to_string();
    let help: Vec<_> = help.lines().map(str::trim_end).collect();
    out.push_str(&format!("\n## {path}\n\n```text\n{}\n```\n", help.join("\n").trim_end()));
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        describe(sub, &format!("{path} {}", sub.get_name()), false, out);
    }
}

#[test]
fn the_command_line_reference_says_what_help_says() {
    golden::assert_matches("docs/reference/cli.md", &reference());
}

#[test]
fn the_command_tree_holds_together() {
    tickwheel::cli::tree().debug_assert();
}

#[test]
fn every_command_and_option_says_what_it_is_for() {
    fn check(command: &Command, path: &str) {
        for arg in command.get_arguments() {
            assert!(arg.get_help().is_some(), "{path} {}", arg.get_id());
        }
        for sub in command.get_subcommands() {
            let path = format!("{path} {}", sub.get_name());
            assert!(sub.get_about().is_some(), "{path}");
            check(sub, &path);
        }
    }
    check(&tickwheel::cli::tree(), "tickwheel");
}

#[test]
fn every_command_of_a_client_that_takes_arguments_shows_one_in_use() {
    fn check(command: &Command, path: &str) {
        for sub in command.get_subcommands() {
            check(sub, &format!("{path} {}", sub.get_name()));
        }
        let takes_some = command.get_arguments().any(|arg| !arg.is_global_set() && arg.get_id() != "help");
        if command.has_subcommands() || !takes_some {
            return;
        }
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        assert!(
            help.contains(&format!("  {path}")) || help.contains(&format!("Example: {path}")),
            "{path}: {help}"
        );
    }
    let tree = tickwheel::cli::tree();
    for noun in ["jobs", "schedules", "workflows", "calendars", "dead-letters", "queues", "diff", "apply"] {
        check(tree.find_subcommand(noun).unwrap(), &format!("tickwheel {noun}"));
    }
}
