//! The list of all settings. One row each: where it stands in [`Config`], its bounds, its flag and what it is for.
//!
//! Everything that deals with settings in general goes through this list, so a new setting is a field, a default and a
//! row here; the tests then ask for its line in the reference.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::Config;
use super::value::{Raw, Value};

/// One setting.
pub struct Setting {
    /// Its name in the file: `section.key`.
    pub key: &'static str,
    /// Its flag of `tickwheel serve`, if it has one.
    pub flag: Option<&'static str>,
    /// Whether its value must never be shown.
    pub secret: bool,
    /// What kind of value it takes.
    pub kind: &'static str,
    /// What it is for, in one sentence.
    pub about: &'static str,
    set: fn(&mut Config, &Raw) -> Result<(), String>,
    get: fn(&Config) -> Option<String>,
}

impl Setting {
    /// The setting with this key.
    pub fn find(key: &str) -> Option<&'static Self> {
        SETTINGS.iter().find(|setting| setting.key == key)
    }

    /// Its section and its key within it.
    pub fn section_and_name(&self) -> (&'static str, &'static str) {
        self.key.split_once('.').expect("every key in the list has a section")
    }

    /// Its environment variable: after the flag where there is one, else after the key.
    pub fn env(&self) -> String {
        let name = self.flag.map_or(self.key, |flag| flag.trim_start_matches('-'));
        format!("TICKWHEEL_{}", name.replace(['.', '-'], "_").to_uppercase())
    }

    /// Its value in `config`, as TOML with secrets masked; `None` if it is not set.
    pub fn show(&self, config: &Config) -> Option<String> {
        (self.get)(config)
    }

    /// Reads `raw` into `config`, or says what is wrong with it.
    pub(super) fn set(&self, config: &mut Config, raw: &Raw) -> Result<(), String> {
        (self.set)(config, raw)
    }
}

macro_rules! setting {
    ($key:literal, $section:ident.$field:ident, $(in $bounds:expr,)? $(flag $flag:literal,)? $(secret $secret:literal,)? $about:literal) => {
        Setting {
            key: $key,
            flag: first!($(Some($flag),)? None),
            secret: first!($($secret,)? false),
            kind: kind_of(|config: &Config| &config.$section.$field),
            about: $about,
            set: |config, raw| {
                let value = Value::read(raw)?;
                $(check_bounds(&value, $bounds)?;)?
                config.$section.$field = value;
                Ok(())
            },
            get: |config| config.$section.$field.show(),
        }
    };
}

macro_rules! first {
    ($first:expr $(, $rest:expr)*) => {
        $first
    };
}

/// The kind of a setting, found through its field so that the list cannot say otherwise.
const fn kind_of<T: Value>(_: fn(&Config) -> &T) -> &'static str {
    T::TYPE
}

fn check_bounds<T: Value + PartialOrd>(value: &T, bounds: RangeInclusive<T>) -> Result<(), String> {
    if bounds.contains(value) {
        return Ok(());
    }
    let shown = |value: &T| value.show().unwrap_or_default();
    Err(format!("must be from {} to {}", shown(bounds.start()), shown(bounds.end())))
}

const MIB: usize = 1024 * 1024;
const DAY_SECONDS: u64 = 86_400;
const CENTURY_SECONDS: u64 = 100 * 365 * DAY_SECONDS;
const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

/// All settings, by section.
pub static SETTINGS: &[Setting] = &[
    setting!("server.listen", server.listen, flag "--listen", "Address and port of the API."),
    setting!(
        "server.allowed_hosts",
        server.allowed_hosts,
        "Host names under which clients reach the API, in addition to its addresses and `localhost`. `*` allows any."
    ),
    setting!("server.connections_max", server.connections_max, in 1..=1_000_000, "Open connections, if the limit of open files allows as many. When the server is full, a new connection replaces the one that has been idle longest."),
    setting!("server.roles", server.roles, flag "--roles", "Roles of this process."),
    setting!("server.allow_open_access", server.allow_open_access, flag "--allow-open-access", "Listen beyond loopback even though no key is configured."),
    setting!("server.allow_process_targets", server.allow_process_targets, flag "--allow-process-targets", "Allow jobs that start programs on the machine of the server."),
    setting!("server.demo", server.demo, flag "--demo", "Start with demo jobs, schedules and a workflow, which call a built-in endpoint."),
    setting!("store.url", store.url, flag "--store", secret true, "The embedded store (`sqlite`) or a PostgreSQL database."),
    setting!("store.data_dir", store.data_dir, flag "--data-dir", "Directory of the embedded store. It is created if it does not exist."),
    setting!("store.pool_size", store.pool_size, in 2..=1_000, "Connections to the database."),
    setting!("store.vacuum_dead_rows", store.vacuum_dead_rows, in 0..=1_000_000_000, "PostgreSQL: the server vacuums a table that has this many dead rows, if they are at least a twentieth of it. 0 means never."),
    setting!("engine.slots", engine.slots, in 1..=100_000, "Jobs that run at once in this process."),
    setting!("engine.near_window", engine.near_window, in SECOND..=HOUR, "How far ahead jobs are held in memory. Later jobs stay in the store until their time is near."),
    setting!("engine.near_jobs_max", engine.near_jobs_max, in 100..=10_000_000, "How many jobs are held in memory."),
    setting!("engine.sweep_interval", engine.sweep_interval, in Duration::from_millis(50)..=Duration::from_secs(60), "How often the server searches the store for due jobs that nobody announced."),
    setting!("engine.lease", engine.lease, in SECOND..=HOUR, "How long a silent process keeps the jobs it runs."),
    setting!("engine.drain_timeout", engine.drain_timeout, in Duration::ZERO..=HOUR, "How long running jobs may take to end when the server stops."),
    setting!("engine.intake_queue_max", engine.intake_queue_max, in 1..=1_000_000, "Submissions that may wait for their commit. Further ones are answered with 503."),
    setting!("engine.catch_up_per_second", engine.catch_up_per_second, in 1..=1_000_000, "Jobs per second that are made for missed firings."),
    setting!("http.allow_private_targets", http.allow_private_targets, flag "--allow-private-targets", "Allow HTTP targets and callbacks on loopback, private and link-local addresses."),
    setting!("http.response_bytes_max", http.response_bytes_max, in 0..=16 * MIB, "Bytes of a target's response that are kept as the job's result."),
    setting!("http.signing_secret", http.signing_secret, secret true, "Secret that signs calls and callbacks (Standard Webhooks). Without it, they are not signed."),
    setting!(
        "process.commands",
        process.commands,
        "Commands that jobs may run: absolute paths, or names that are searched for in the server's `PATH`. `*` allows any."
    ),
    setting!(
        "process.env",
        process.env,
        "Environment variables of the server that commands get: names, or the beginning of one and `*`."
    ),
    setting!(
        "process.user",
        process.user,
        "User that commands run as: a name in `/etc/passwd`, a number, or `uid:gid`. Only a server that runs as root can choose. By default they run as the server's user."
    ),
    setting!("process.memory_max", process.memory_max, in 0..=1 << 50, "Bytes of memory (address space) that each process of a command may use. 0 means no limit."),
    setting!("process.cpu_seconds_max", process.cpu_seconds_max, in 0..=CENTURY_SECONDS, "Seconds of processor time that each process of a command may use. 0 means no limit."),
    setting!("process.open_files_max", process.open_files_max, in 0..=1 << 20, "Files that each process of a command may have open. 0 means as many as the server."),
    setting!("process.output_bytes_max", process.output_bytes_max, in 0..=16 * MIB, "Bytes of standard output and of standard error that are kept: the last ones."),
    setting!("process.stop_grace", process.stop_grace, in Duration::ZERO..=Duration::from_secs(300), "How long a command may take to end after SIGTERM, before it gets SIGKILL."),
    setting!("limits.body_bytes_max", limits.body_bytes_max, in 1024..=1024 * MIB, "Bytes of a request's body."),
    setting!("limits.batch_bytes_max", limits.batch_bytes_max, in 1024..=1024 * MIB, "Bytes of a batch request's body."),
    setting!("limits.bodies_bytes_max", limits.bodies_bytes_max, in MIB..=64 * 1024 * MIB, "Bytes of the bodies of all requests under way. Further requests are answered with 503."),
    setting!("limits.page_bytes_max", limits.page_bytes_max, in 1024..=1024 * MIB, "Bytes after which a page of a list ends, whatever its `limit`. `next_cursor` continues the list."),
    setting!("limits.batch_jobs_max", limits.batch_jobs_max, in 1..=100_000, "Jobs in one batch."),
    setting!("limits.payload_bytes_max", limits.payload_bytes_max, in 0..=1024 * MIB, "Bytes of a job's payload."),
    setting!("limits.metadata_bytes_max", limits.metadata_bytes_max, in 0..=1024 * MIB, "Bytes of a job's metadata."),
    setting!("limits.name_chars_max", limits.name_chars_max, in 1..=10_000, "Characters of a name or a key."),
    setting!("limits.tags_max", limits.tags_max, in 0..=10_000, "Tags on a job."),
    setting!("limits.depends_on_max", limits.depends_on_max, in 0..=10_000, "Jobs that a job may depend on."),
    setting!("limits.workflow_tasks_max", limits.workflow_tasks_max, in 1..=100_000, "Tasks of a workflow, including those inside fan-outs."),
    setting!("limits.workflow_edges_max", limits.workflow_edges_max, in 0..=1_000_000, "Dependencies between the tasks of a workflow."),
    setting!("limits.tag_chars_max", limits.tag_chars_max, in 1..=10_000, "Characters of a tag."),
    setting!("limits.retries_max", limits.retries_max, in 0..=10_000, "Retries a job may ask for."),
    setting!("limits.json_depth_max", limits.json_depth_max, in 1..=120, "How deep JSON may be nested."),
    setting!("limits.url_chars_max", limits.url_chars_max, in 16..=65_536, "Characters of the URL of a target or a callback."),
    setting!("limits.headers_max", limits.headers_max, in 0..=1_000, "Headers of an HTTP target."),
    setting!("limits.header_chars_max", limits.header_chars_max, in 1..=65_536, "Characters of a header's value."),
    setting!("limits.timeout_seconds_max", limits.timeout_seconds_max, in 1..=30 * DAY_SECONDS, "Seconds an attempt may take."),
    setting!("limits.retry_delay_seconds_max", limits.retry_delay_seconds_max, in 1..=CENTURY_SECONDS, "Seconds between an attempt and its retry."),
    setting!("limits.delay_seconds_max", limits.delay_seconds_max, in 1..=CENTURY_SECONDS, "Seconds by which `delay` may put off a job."),
    setting!("limits.wait_seconds_max", limits.wait_seconds_max, in 1..=3600, "Seconds a request may wait for a job to end."),
    setting!("limits.error_bytes_max", limits.error_bytes_max, in 64..=MIB, "Bytes of a reported error message that are stored."),
    setting!("poison.failures", poison.failures, in 1..=1_000_000, "A job that fails this often within `poison.window` is given up, even if it has retries left."),
    setting!("poison.window", poison.window, in SECOND..=Duration::from_secs(7 * DAY_SECONDS), "The time in which failures count for `poison.failures`."),
    setting!("poison.lost", poison.lost, in 1..=1_000, "A job that is lost this often, each time as the only job of a process that died, is given up, even if it has retries left."),
    setting!("log.format", log.format, "Plain lines, or JSON objects."),
    setting!("log.level", log.level, "Which levels are logged."),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_lies_within_its_own_bounds() {
        let config = Config::default();
        for setting in SETTINGS {
            let Some(shown) = setting.show(&config) else { continue };
            let word = Raw::Word(shown.trim_matches(['"', '[', ']']).replace("\", \"", ","));
            assert_eq!(setting.set(&mut Config::default(), &word), Ok(()), "{}", setting.key);
        }
    }

    #[test]
    fn keys_and_environment_variables_are_unique() {
        let mut names: Vec<_> = SETTINGS.iter().flat_map(|s| [s.key.to_owned(), s.env()]).collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn a_variable_is_named_after_the_flag_else_after_the_key() {
        assert_eq!(Setting::find("store.data_dir").unwrap().env(), "TICKWHEEL_DATA_DIR");
        assert_eq!(Setting::find("engine.near_window").unwrap().env(), "TICKWHEEL_ENGINE_NEAR_WINDOW");
    }
}
