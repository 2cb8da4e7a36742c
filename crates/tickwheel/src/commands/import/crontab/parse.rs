//! A crontab as a whole: what each line means after the ones before it.
//!
//! Pure. A variable holds for the lines after it; `CRON_TZ` says in which zone they are read, `SHELL` who runs them. A bad line is noted and
//! the others are read all the same, except that lines after a `CRON_TZ` that is no zone are not guessed at.

use tickwheel_core::schedule::{Recurrence, Zone};

use super::layout::Layout;
use super::line::{self, Line, first_word};
use super::percent;

const SHELL_DEFAULT: &str = "/bin/sh";

/// What a crontab has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Crontab {
    /// In its order.
    pub items: Vec<Item>,
    /// The lines that were not understood.
    pub problems: Vec<BadLine>,
}

/// Something to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// At its times.
    Job(CronJob),
    /// When the machine starts.
    Reboot {
        /// The number of its line.
        line: usize,
        /// What is run.
        command: String,
    },
}

/// A command and its times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CronJob {
    /// The comment right above it.
    pub comment: Vec<String>,
    /// The expression.
    pub cron: String,
    /// The zone in which it is read, if one was named.
    pub timezone: Option<String>,
    /// Who it runs as, if the crontab says.
    pub user: Option<String>,
    /// The command and its input.
    pub command: percent::Command,
    /// Who runs it.
    pub shell: String,
    /// The variables it is given.
    pub environment: Vec<(String, String)>,
    /// Who was mailed what it printed.
    pub mailto: Option<String>,
}

/// A line that was not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadLine {
    /// Its number, from 1.
    pub line: usize,
    /// What is wrong.
    pub what: String,
}

/// Reads a crontab. `timezone` is that of lines before any `CRON_TZ`.
pub fn parse(text: &str, layout: Layout, timezone: Option<&str>) -> Crontab {
    let mut parser = Parser::new(layout, timezone);
    for (index, text) in text.lines().enumerate() {
        let line = index + 1;
        if let Err(what) = parser.line(line, text) {
            parser.comment.clear();
            parser.crontab.problems.push(BadLine { line, what });
        }
    }
    parser.crontab
}

#[derive(Clone)]
enum Timezone {
    /// A zone, or none that was named.
    Known(Option<String>),
    /// What this line named is none.
    BadSince(usize),
}

struct Parser<'a> {
    layout: Layout,
    timezone_default: Option<&'a str>,
    timezone: Timezone,
    shell: String,
    mailto: Option<String>,
    environment: Vec<(String, String)>,
    comment: Vec<String>,
    crontab: Crontab,
}

impl<'a> Parser<'a> {
    fn new(layout: Layout, timezone_default: Option<&'a str>) -> Self {
        Self {
            layout,
            timezone_default,
            timezone: Timezone::Known(timezone_default.map(str::to_owned)),
            shell: SHELL_DEFAULT.into(),
            mailto: None,
            environment: Vec::new(),
            comment: Vec::new(),
            crontab: Crontab::default(),
        }
    }

    fn line(&mut self, line: usize, text: &str) -> Result<(), String> {
        if text.contains('\0') {
            return Err("it has a NUL character".into());
        }
        match line::read(text)? {
            Line::Blank => self.comment.clear(),
            Line::Comment(text) => self.comment.push(text.to_owned()),
            Line::Variable { name, value } => {
                self.comment.clear();
                self.variable(line, name, value)?;
            }
            Line::Entry { when, rest } => {
                let item = self.entry(line, when, rest)?;
                self.crontab.items.push(item);
                self.comment.clear();
            }
        }
        Ok(())
    }

    fn variable(&mut self, line: usize, name: &str, value: &str) -> Result<(), String> {
        let given = Some(value).filter(|value| !value.is_empty());
        match name {
            "CRON_TZ" => return self.read_in_zone(line, given),
            "SHELL" => self.shell = given.unwrap_or(SHELL_DEFAULT).into(),
            _ if name.starts_with("TICKWHEEL_") => return Err(format!("{name} is set by Tickwheel itself")),
            "MAILTO" => self.mailto = given.map(str::to_owned),
            _ => {
                self.environment.retain(|(known, _)| known != name);
                self.environment.push((name.into(), value.into()));
            }
        }
        Ok(())
    }

    fn read_in_zone(&mut self, line: usize, name: Option<&str>) -> Result<(), String> {
        let Some(name) = name else {
            self.timezone = Timezone::Known(self.timezone_default.map(str::to_owned));
            return Ok(());
        };
        self.timezone = Timezone::BadSince(line);
        let zone = Zone::named(name).map_err(|error| error.to_string())?;
        self.timezone = Timezone::Known(Some(zone.name().to_owned()));
        Ok(())
    }

    fn entry(&self, line: usize, when: String, rest: &str) -> Result<Item, String> {
        let (user, command) = match self.layout {
            Layout::User => (None, rest),
            Layout::System => {
                let (user, command) = first_word(rest);
                if command.is_empty() {
                    return Err("expected a user and a command after the time".into());
                }
                (Some(user.to_owned()), command)
            }
        };
        let command = percent::split(command);
        if command.text.trim().is_empty() {
            return Err("there is no command before the first %".into());
        }
        if when.eq_ignore_ascii_case("@reboot") {
            return Ok(Item::Reboot { line, command: command.text });
        }
        Recurrence::parse(&when).map_err(|error| error.to_string())?;
        let timezone = match &self.timezone {
            Timezone::Known(timezone) => timezone.clone(),
            Timezone::BadSince(line) => return Err(format!("its time zone is not known, see line {line}")),
        };
        Ok(Item::Job(CronJob {
            comment: self.comment.clone(),
            cron: when,
            timezone,
            user,
            command,
            shell: self.shell.clone(),
            environment: self.environment.clone(),
            mailto: self.mailto.clone(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jobs(text: &str, layout: Layout) -> Vec<CronJob> {
        let crontab = parse(text, layout, None);
        assert_eq!(crontab.problems, []);
        let job = |item| match item {
            Item::Job(job) => job,
            Item::Reboot { .. } => panic!("there is none"),
        };
        crontab.items.into_iter().map(job).collect()
    }

    fn problems(text: &str) -> Vec<(usize, String)> {
        let problems = parse(text, Layout::User, None).problems;
        problems.into_iter().map(|problem| (problem.line, problem.what)).collect()
    }

    #[test]
    fn a_variable_holds_for_the_lines_after_it() {
        let jobs = jobs(
            "@daily a\nSHELL=/bin/bash\nX=1\nMAILTO=ops\n@daily b\nX=2\nPATH=/bin\nMAILTO=\nSHELL=\n@daily c\n",
            Layout::User,
        );
        let variables = |job: &CronJob| {
            job.environment.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>()
        };
        assert_eq!(
            jobs.iter().map(variables).collect::<Vec<_>>(),
            [vec![], vec!["X=1"], vec!["X=2", "PATH=/bin"]]
        );
        let shells: Vec<_> = jobs.iter().map(|job| job.shell.as_str()).collect();
        assert_eq!(shells, ["/bin/sh", "/bin/bash", "/bin/sh"]);
        let mailed: Vec<_> = jobs.iter().map(|job| job.mailto.as_deref()).collect();
        assert_eq!(mailed, [None, Some("ops"), None]);
    }

    #[test]
    fn only_cron_tz_changes_the_zone_of_the_times() {
        let text = "@daily a\nTZ=Asia/Tokyo\n@daily b\nCRON_TZ=europe/berlin\n@daily c\nCRON_TZ=\n@daily d\n";
        let zones = |default| {
            let crontab = parse(text, Layout::User, default);
            let zone = |item| match item {
                Item::Job(job) => job.timezone,
                Item::Reboot { .. } => None,
            };
            crontab.items.into_iter().map(zone).collect::<Vec<_>>()
        };
        let berlin = || Some("Europe/Berlin".to_owned());
        assert_eq!(zones(None), [None, None, berlin(), None]);
        let rome = || Some("Europe/Rome".to_owned());
        assert_eq!(zones(Some("Europe/Rome")), [rome(), rome(), berlin(), rome()]);
        assert_eq!(jobs(text, Layout::User)[1].environment, [("TZ".to_owned(), "Asia/Tokyo".to_owned())]);
    }

    #[test]
    fn lines_after_a_zone_that_is_none_are_not_guessed_at() {
        let text = "@daily a\nCRON_TZ=Berlin\n@daily b\nCRON_TZ=UTC\n@daily c\n";
        let crontab = parse(text, Layout::User, None);
        assert_eq!(crontab.items.len(), 2);
        let problems = problems(text);
        assert_eq!(problems[0], (2, r#"unknown time zone "Berlin"; did you mean Europe/Berlin?"#.into()));
        assert_eq!(problems[1], (3, "its time zone is not known, see line 2".into()));
        assert_eq!(problems.len(), 2);
    }

    #[test]
    fn a_system_crontab_names_the_user() {
        let jobs =
            jobs("17 *\t* * *\troot    cd / && run-parts /etc\n@daily www-data php x\n", Layout::System);
        assert_eq!((jobs[0].cron.as_str(), jobs[0].user.as_deref()), ("17 * * * *", Some("root")));
        assert_eq!(jobs[0].command.text, "cd / && run-parts /etc");
        assert_eq!((jobs[1].user.as_deref(), jobs[1].command.text.as_str()), (Some("www-data"), "php x"));
        let alone = parse("@daily root\n", Layout::System, None);
        assert_eq!(alone.problems[0].what, "expected a user and a command after the time");
    }

    #[test]
    fn the_comment_right_above_a_line_is_its_own() {
        let jobs =
            jobs("# of the file\n\n# one\n# two\n@daily a\n@daily b\n# of X\nX=1\n@daily c\n", Layout::User);
        let comments: Vec<_> = jobs.iter().map(|job| job.comment.join(" ")).collect();
        assert_eq!(comments, ["one two", "", ""]);
    }

    #[test]
    fn the_start_of_a_machine_is_kept_apart() {
        let crontab = parse("@reboot /usr/bin/warm up\n", Layout::User, None);
        assert_eq!(crontab.items, [Item::Reboot { line: 1, command: "/usr/bin/warm up".into() }]);
        assert_eq!(crontab.problems, []);
    }

    #[test]
    fn a_bad_line_is_told_with_its_number_and_the_others_are_read() {
        let text =
            "60 * * * * a\n@daily b\n* * * * c\n@fortnightly d\n@daily %e\n1~5 * * * * f\n@daily x\0y\n";
        let problems = problems(text);
        let lines: Vec<_> = problems.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [1, 3, 4, 5, 6, 7]);
        assert_eq!(problems[0].1, "minute: 60 is out of range, allowed are 0-59");
        assert_eq!(parse(text, Layout::User, None).items.len(), 1);
    }
}
