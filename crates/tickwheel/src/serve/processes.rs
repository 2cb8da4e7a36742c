//! Jobs that start programs, as far as the operator lets them.

use std::sync::Arc;

use anyhow::Context as _;
use tickwheel_api::RefusedProcess;
use tickwheel_core::ports::Executor;
use tickwheel_executor::executor::{
    Account, OutputSink, ProcessExecutor, ProcessExecutorOptions, ProcessPolicy,
};
use tickwheel_protocol::ProcessTarget;

use crate::config::Config;

/// This program, even if its file was replaced meanwhile.
const THIS_PROGRAM: &str = "/proc/self/exe";

/// What starts programs; nothing if that is not allowed. What they print goes to `sink`.
pub fn executor(config: &Config, sink: Arc<dyn OutputSink>) -> anyhow::Result<Option<Arc<dyn Executor>>> {
    if !config.server.allow_process_targets {
        return Ok(None);
    }
    let process = &config.process;
    let limit = |limit: u64| (limit > 0).then_some(limit);
    Ok(Some(Arc::new(ProcessExecutor::new(ProcessExecutorOptions {
        launcher: THIS_PROGRAM.into(),
        policy: policy(config),
        passed_on: process.env.words().to_vec(),
        account: account(config)?,
        memory_bytes_max: limit(process.memory_max),
        cpu_seconds_max: limit(process.cpu_seconds_max),
        open_files_max: limit(process.open_files_max),
        output_bytes_max: process.output_bytes_max,
        stop_grace: process.stop_grace,
        sink,
    }))))
}

fn policy(config: &Config) -> ProcessPolicy {
    ProcessPolicy { commands: config.process.commands.words().to_vec() }
}

fn account(config: &Config) -> anyhow::Result<Option<Account>> {
    let Some(user) = &config.process.user else {
        if Account::own_is_root() {
            tracing::warn!("jobs may start programs as root: set process.user to a user with fewer rights");
        }
        return Ok(None);
    };
    let account = Account::find(user.as_str()).map_err(anyhow::Error::msg).context("process.user")?;
    if !account.is_own() && !Account::own_is_root() {
        anyhow::bail!("process.user: only a server that runs as root can run commands as {}", user.as_str());
    }
    Ok(Some(account))
}

/// Why a command may not be run, if it may not.
pub fn refusal(config: &Config) -> impl Fn(&ProcessTarget) -> Option<RefusedProcess> + Send + Sync + use<> {
    let policy = config.server.allow_process_targets.then(|| policy(config));
    move |target| match &policy {
        None => Some(RefusedProcess {
            pointer: String::new(),
            detail:
                "this server does not run commands; its operator can allow it with --allow-process-targets"
                    .into(),
        }),
        Some(policy) => {
            let checked = policy.check(&target.command, target.env.keys().map(String::as_str));
            let forbidden = checked.err()?;
            Some(RefusedProcess { pointer: forbidden.pointer, detail: forbidden.reason })
        }
    }
}
