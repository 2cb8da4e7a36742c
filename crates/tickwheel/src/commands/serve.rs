//! `tickwheel serve`: the flags of a server. The server itself is in [`crate::serve`].

use clap::Args;

use super::config::ConfigFile;
use crate::config::Flag;
use crate::failure::CommandError;

/// Options of `serve`. Each is a setting. The configuration file has further settings.
#[derive(Debug, Args)]
#[command(after_help = "Every setting, with its environment variable: docs/reference/configuration.md")]
pub struct ServeArgs {
    #[command(flatten)]
    file: ConfigFile,
    /// Address and port of the API [env: TICKWHEEL_LISTEN] [default: 127.0.0.1:7180]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// Directory of the embedded store [env: TICKWHEEL_DATA_DIR] [default: ./tickwheel-data]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<String>,
    /// Where to store jobs: `sqlite`, or the URL of a PostgreSQL database [env: TICKWHEEL_STORE] [default: sqlite]
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// Roles of this process [env: TICKWHEEL_ROLES] [default: api,scheduler,worker]
    #[arg(long, value_name = "LIST")]
    roles: Option<String>,
    /// Allow HTTP targets on loopback and private networks [env: TICKWHEEL_ALLOW_PRIVATE_TARGETS]
    #[arg(long)]
    allow_private_targets: bool,
    /// Allow jobs that start programs on this machine [env: TICKWHEEL_ALLOW_PROCESS_TARGETS]
    #[arg(long)]
    allow_process_targets: bool,
    /// Listen beyond loopback even though no key is configured [env: TICKWHEEL_ALLOW_OPEN_ACCESS]
    #[arg(long)]
    allow_open_access: bool,
    /// Start with demo jobs, schedules and a workflow, which call a built-in endpoint [env: TICKWHEEL_DEMO]
    #[arg(long)]
    demo: bool,
}

impl ServeArgs {
    fn flags(&self) -> Vec<Flag> {
        let values = [
            ("--listen", self.listen.as_ref()),
            ("--data-dir", self.data_dir.as_ref()),
            ("--store", self.store.as_ref()),
            ("--roles", self.roles.as_ref()),
        ];
        let switches = [
            ("--allow-private-targets", self.allow_private_targets),
            ("--allow-process-targets", self.allow_process_targets),
            ("--allow-open-access", self.allow_open_access),
            ("--demo", self.demo),
        ];
        let values =
            values.into_iter().filter_map(|(flag, value)| Some(Flag { flag, value: value?.clone() }));
        let switches = switches.into_iter().filter(|(_, on)| *on);
        values.chain(switches.map(|(flag, _)| Flag { flag, value: "true".into() })).collect()
    }
}

/// Runs a server until it is asked to stop.
pub async fn run(args: ServeArgs) -> Result<(), CommandError> {
    let config = args.file.load(&args.flags())?;
    Ok(crate::serve::run(config).await?)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command, tree};
    use crate::config::SETTINGS;

    fn serve_args(line: &[&str]) -> ServeArgs {
        let cli = Cli::try_parse_from(["tickwheel", "serve"].iter().chain(line)).unwrap();
        let Command::Serve(args) = cli.command else { unreachable!("the line says serve") };
        *args
    }

    #[test]
    fn every_flag_reaches_the_configuration() {
        let line = [
            "--listen=127.0.0.1:9",
            "--data-dir=d",
            "--store=sqlite",
            "--roles=api",
            "--allow-private-targets",
            "--allow-process-targets",
            "--allow-open-access",
            "--demo",
        ];
        let mut given: Vec<_> = serve_args(&line).flags().iter().map(|flag| flag.flag).collect();
        let mut known: Vec<_> = SETTINGS.iter().filter_map(|setting| setting.flag).collect();
        given.sort_unstable();
        known.sort_unstable();
        assert_eq!(given, known);
    }

    #[test]
    fn flags_that_are_not_given_leave_the_other_sources_alone() {
        assert!(serve_args(&[]).flags().is_empty());
    }

    #[test]
    fn the_help_of_a_flag_names_its_environment_variable() {
        let tree = tree();
        let serve = tree.find_subcommand("serve").unwrap();
        for setting in SETTINGS.iter().filter(|setting| setting.flag.is_some()) {
            let flag = setting.flag.unwrap().trim_start_matches('-');
            let arg = serve.get_arguments().find(|arg| arg.get_long() == Some(flag)).unwrap();
            let help = arg.get_help().unwrap().to_string();
            assert!(help.contains(&format!("[env: {}]", setting.env())), "{flag}: {help}");
        }
    }
}
