//! A line of a crontab as a schedule: its name, and the command as a list of words that needs no further quoting.

use std::collections::HashSet;

use tickwheel_protocol::schedule::RESERVED_NAME;

use super::parse::CronJob;

const SLUG_CHARS_MAX: usize = 60;
/// Commands that prepare others: a name of theirs says nothing.
const PREPARING: [&str; 12] =
    ["cd", "test", "[", "sleep", "export", "source", ".", "true", "umask", "set", "if", "ulimit"];
/// Commands that run others.
const WRAPPING: [&str; 10] =
    ["nice", "ionice", "sudo", "env", "exec", "nohup", "time", "chronic", "command", "then"];
/// How long a command may take: as long as any. Cron sets no limit.
pub const TIMEOUT: &str = "24h";

/// What is written of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// What was said of it.
    pub comment: Vec<String>,
    /// Its name.
    pub name: String,
    /// The expression.
    pub cron: String,
    /// The zone in which it is read.
    pub timezone: Option<String>,
    /// The type of its job.
    pub job_type: String,
    /// What its job runs.
    pub command: Vec<String>,
    /// The variables it is given.
    pub env: Vec<(String, String)>,
    /// Where it runs, if the crontab says.
    pub cwd: Option<String>,
    /// What it reads.
    pub stdin: Option<String>,
    /// What else is known.
    pub metadata: Vec<(&'static str, String)>,
}

/// The schedule of a line.
pub fn schedule(job: &CronJob, names: &mut Names) -> Schedule {
    let slug = slug(&job.command.text);
    let facts = [("user", &job.user), ("mailto", &job.mailto)];
    let known = |(name, value): (&'static str, &Option<String>)| Some((name, value.clone()?));
    Schedule {
        comment: job.comment.clone(),
        name: names.unique(&slug),
        cron: job.cron.clone(),
        timezone: job.timezone.clone(),
        job_type: slug,
        command: vec![job.shell.clone(), "-c".into(), job.command.text.clone()],
        env: environment(job),
        cwd: home(job),
        stdin: job.command.stdin.clone(),
        metadata: facts.into_iter().filter_map(known).collect(),
    }
}

/// Cron tells a command which shell runs it.
fn environment(job: &CronJob) -> Vec<(String, String)> {
    let shell = ("SHELL".to_owned(), job.shell.clone());
    job.environment.iter().cloned().chain([shell]).collect()
}

/// Cron enters the home directory that a crontab names.
fn home(job: &CronJob) -> Option<String> {
    let home = job.environment.iter().find(|(name, _)| name == "HOME")?.1.clone();
    home.starts_with('/').then_some(home)
}

/// Names that were given, so that none is given twice.
#[derive(Debug)]
pub struct Names(HashSet<String>);

impl Default for Names {
    fn default() -> Self {
        Self(HashSet::from([RESERVED_NAME.to_owned()]))
    }
}

impl Names {
    fn unique(&mut self, slug: &str) -> String {
        let numbered = (2_u64..).map(|number| format!("{slug}-{number}"));
        let mut candidates = std::iter::once(slug.to_owned()).chain(numbered);
        let name = candidates.find(|name| !self.0.contains(name)).expect("there is no end of numbers");
        self.0.insert(name.clone());
        name
    }
}

/// `backup-sh` of `cd /srv && nice -n 19 ./bin/backup.sh --full`.
fn slug(command: &str) -> String {
    let parts = command.split(['&', '|', ';', '(', ')']);
    let programs = parts.filter_map(program).collect::<Vec<_>>();
    let telling = programs.iter().find(|program| !PREPARING.contains(program)).or(programs.first());
    let base = telling.map_or("", |program| program.rsplit('/').next().unwrap_or_default());
    let words = base.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let slug = words.collect::<Vec<_>>().join("-").to_ascii_lowercase();
    let slug: String = slug.chars().take(SLUG_CHARS_MAX).collect();
    if slug.is_empty() { "job".into() } else { slug.trim_end_matches('-').into() }
}

/// The first word that is neither a variable, nor a wrapper, nor an option or a number of one.
fn program(part: &str) -> Option<&str> {
    let is_variable = |word: &str| word.split_once('=').is_some_and(|(name, _)| !name.contains('/'));
    let is_option = |word: &str| word.starts_with('-') || word.bytes().all(|b| b.is_ascii_digit());
    part.split_whitespace()
        .map(|word| word.trim_matches(['"', '\'', '{', '}']))
        .find(|word| !word.is_empty() && !is_variable(word) && !is_option(word) && !WRAPPING.contains(word))
}

#[cfg(test)]
mod tests {
    use super::super::layout::Layout;
    use super::super::parse::{Item, parse};
    use super::*;

    fn schedules(text: &str) -> Vec<Schedule> {
        let crontab = parse(text, Layout::User, None);
        assert_eq!(crontab.problems, []);
        let mut names = Names::default();
        let items = crontab.items.iter().filter_map(|item| match item {
            Item::Job(job) => Some(schedule(job, &mut names)),
            Item::Reboot { .. } => None,
        });
        items.collect()
    }

    #[test]
    fn the_name_is_that_of_the_program() {
        for (command, name) in [
            ("/usr/local/bin/backup.sh --full", "backup-sh"),
            ("cd / && run-parts --report /etc/cron.hourly", "run-parts"),
            ("test -x /usr/sbin/anacron || ( cd / && run-parts --report /etc/cron.daily )", "run-parts"),
            ("A=b nice -n 19 ./Do_It.PY", "do-it-py"),
            ("[ -x /usr/bin/x ] && /usr/bin/x", "x"),
            ("cd /srv", "cd"),
            ("\"/opt/my tool/run\"", "my"),
            ("日本", "job"),
            ("> /dev/null", "job"),
        ] {
            assert_eq!(slug(command), name, "{command}");
        }
        assert!(slug(&"x".repeat(500)).len() <= SLUG_CHARS_MAX);
    }

    #[test]
    fn no_name_is_given_twice() {
        let text = "@daily run\n@daily run -x\n@daily run-2\n@daily run -y\n@daily preview\n";
        let schedules = schedules(text);
        let names: Vec<_> = schedules.iter().map(|schedule| schedule.name.as_str()).collect();
        assert_eq!(names, ["run", "run-2", "run-2-2", "run-3", "preview-2"]);
        assert_eq!(schedules[1].job_type, "run");
    }

    #[test]
    fn the_shell_runs_the_command_with_its_variables() {
        let schedules = schedules("SHELL=/bin/bash\nA=x y\nB=$HOME\n@daily echo \"$A\" | wc -c\n");
        assert_eq!(schedules[0].command, ["/bin/bash", "-c", "echo \"$A\" | wc -c"]);
        let env = [("A", "x y"), ("B", "$HOME"), ("SHELL", "/bin/bash")];
        assert_eq!(schedules[0].env, env.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!((&schedules[0].cwd, &schedules[0].stdin), (&None, &None));
    }

    #[test]
    fn a_named_home_is_where_the_command_runs() {
        let schedules = schedules("HOME=/srv/app\n@daily run\nHOME=\n@daily run\n");
        assert_eq!(schedules[0].cwd.as_deref(), Some("/srv/app"));
        assert_eq!(schedules[1].cwd, None);
    }

    #[test]
    fn what_follows_a_percent_sign_is_its_input() {
        let schedules = schedules("@daily mail -s hi ann%Hello,%it's \\% done\n");
        assert_eq!(schedules[0].command[2], "mail -s hi ann");
        assert_eq!(schedules[0].stdin.as_deref(), Some("Hello,\nit's % done\n"));
    }
}
