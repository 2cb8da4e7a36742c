//! Files of schedules, calendars and workflows: which to read, and what they declare.
//!
//! A file has sections, or is one workflow. Kept true: every entry knows its location, so that a mistake can be
//! reported with file, position and name; no name is declared twice. All mistakes are reported together.
//!
//! Deliberately not here: what makes a valid schedule. An entry is the body of a request, and the server checks it.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::format::Format;
use crate::commands::input::read_file;
use crate::failure::{CommandError, said};
use crate::output::plain;

/// A section of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Section {
    /// Days on which schedules do not fire.
    Calendars,
    /// Recurring jobs.
    Schedules,
    /// Graphs of tasks.
    Workflows,
}

impl Section {
    const ALL: [Self; 3] = [Self::Schedules, Self::Calendars, Self::Workflows];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Calendars => "calendars",
            Self::Schedules => "schedules",
            Self::Workflows => "workflows",
        }
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|section| section.as_str() == name)
    }
}

/// One thing that a file declares.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its location.
    location: Location,
    /// Its name.
    pub name: String,
    /// All its fields, including the name.
    pub body: Map<String, Value>,
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:?})", self.location, plain(&self.name))
    }
}

/// The location of an entry.
#[derive(Clone, Debug)]
struct Location {
    file: String,
    section: Section,
    /// The position within the section, from 0. `None` if the entry is the whole file.
    index: Option<usize>,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = plain(&self.file);
        match self.index {
            Some(index) => write!(f, "{file}: {}[{index}]", self.section.as_str()),
            None => f.write_str(&file),
        }
    }
}

/// What the files declare, in their order.
#[derive(Clone, Debug, Default)]
pub struct Declared {
    /// Calendars.
    pub calendars: Vec<Entry>,
    /// Schedules.
    pub schedules: Vec<Entry>,
    /// Workflows.
    pub workflows: Vec<Entry>,
    /// Whether a file has a section for workflows, even an empty one.
    pub speaks_of_workflows: bool,
}

/// Reads files, the files in directories, and standard input (`-`).
pub fn read(paths: &[PathBuf]) -> Result<Declared, CommandError> {
    let mut reader = Reader::default();
    for file in all_files(paths)? {
        let text = read_file(&file)?;
        let name = if file == Path::new("-") { "standard input".into() } else { file.display().to_string() };
        reader.read(&name, Format::of(&file)?, &text);
    }
    reader.finish()
}

fn all_files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, CommandError> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            files.extend(files_in(path)?);
        } else {
            files.push(path.clone());
        }
    }
    if files.iter().filter(|file| *file == Path::new("-")).count() > 1 {
        return Err(CommandError::BadInput("standard input can be read only once".into()));
    }
    Ok(files)
}

fn files_in(directory: &Path) -> Result<Vec<PathBuf>, CommandError> {
    let name = directory.display();
    let bad = |error: std::io::Error| CommandError::BadInput(format!("cannot read {name}: {}", said(&error)));
    let mut files = Vec::new();
    for item in std::fs::read_dir(directory).map_err(bad)? {
        let path = item.map_err(bad)?.path();
        if path.is_file() && Format::of(&path).is_ok() {
            files.push(path);
        }
    }
    if files.is_empty() {
        return Err(CommandError::BadInput(format!("{name} has no .yaml, .yml, .toml or .json file")));
    }
    files.sort();
    Ok(files)
}

#[derive(Default)]
struct Reader {
    declared: Declared,
    /// Where each name was first seen.
    seen: HashMap<(Section, String), String>,
    problems: Vec<String>,
}

impl Reader {
    fn read(&mut self, file: &str, format: Format, text: &str) {
        let sections = match format.parse(text) {
            Ok(Value::Object(sections)) => sections,
            Ok(_) => {
                let known = Section::ALL.map(|section| format!("`{}`", section.as_str())).join(", ");
                return self.refuse(file, &format!("declares nothing: expected one of the sections {known}"));
            }
            Err(error) => return self.refuse(file, &error),
        };
        if sections.contains_key("tasks") {
            self.declared.speaks_of_workflows = true;
            let location = Location { file: file.into(), section: Section::Workflows, index: None };
            return self.read_entry(location, Value::Object(sections));
        }
        for (name, entries) in sections {
            match (Section::named(&name), entries) {
                (Some(section), Value::Array(entries)) => self.read_section(file, section, entries),
                (Some(_), _) => self.refuse(file, &format!("`{name}` is not a list")),
                (None, _) => {
                    let known = Section::ALL.map(Section::as_str).join(", ");
                    self.refuse(file, &format!("unknown section `{name}`, allowed are {known}"));
                }
            }
        }
    }

    fn read_section(&mut self, file: &str, section: Section, entries: Vec<Value>) {
        self.declared.speaks_of_workflows |= section == Section::Workflows;
        for (index, entry) in entries.into_iter().enumerate() {
            self.read_entry(Location { file: file.into(), section, index: Some(index) }, entry);
        }
    }

    fn read_entry(&mut self, location: Location, entry: Value) {
        let Value::Object(body) = entry else {
            return self.refuse(&location.to_string(), "is not a set of fields");
        };
        let Some(name) = body.get("name").and_then(Value::as_str).filter(|name| !name.is_empty()) else {
            return self.refuse(&location.to_string(), "needs a `name` that is not empty");
        };
        self.add(Entry { location, name: name.into(), body });
    }

    fn add(&mut self, entry: Entry) {
        let section = entry.location.section;
        if let Some(first) = self.seen.get(&(section, entry.name.clone())) {
            let problem = format!("{entry} is declared a second time, the first is {first}");
            self.problems.push(problem);
            return;
        }
        self.seen.insert((section, entry.name.clone()), entry.location.to_string());
        match section {
            Section::Calendars => self.declared.calendars.push(entry),
            Section::Schedules => self.declared.schedules.push(entry),
            Section::Workflows => self.declared.workflows.push(entry),
        }
    }

    fn refuse(&mut self, location: &str, what: &str) {
        self.problems.push(format!("{location}: {}", plain(what)));
    }

    fn finish(self) -> Result<Declared, CommandError> {
        if self.problems.is_empty() {
            return Ok(self.declared);
        }
        Err(CommandError::BadInput(self.problems.join("\n")))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const YAML: &str = r#"
schedules:
  - name: daily-report
    cron: "0 2 * * *"
    start_at: 2026-12-01T15:00:00Z
    job: { type: report, payload: { full: true, pages: [1, 2.5] } }
calendars:
  - name: holidays
    days: [2026-12-25]
"#;

    const TOML: &str = r#"
[[schedules]]
name = "daily-report"
cron = "0 2 * * *"
start_at = 2026-12-01T15:00:00Z
job = { type = "report", payload = { full = true, pages = [1, 2.5] } }

[[calendars]]
name = "holidays"
days = [2026-12-25]
"#;

    fn declared(files: &[(&str, &str)]) -> Result<Declared, String> {
        let mut reader = Reader::default();
        for (name, text) in files {
            reader.read(name, Format::of(Path::new(name)).unwrap(), text);
        }
        reader.finish().map_err(|failure| failure.to_string())
    }

    fn bodies(declared: &Declared) -> Vec<Value> {
        let all = declared.schedules.iter().chain(&declared.calendars);
        all.map(|entry| Value::Object(entry.body.clone())).collect()
    }

    #[test]
    fn toml_declares_the_same_as_yaml() {
        let yaml = declared(&[("a.yaml", YAML)]).unwrap();
        assert_eq!(bodies(&yaml), bodies(&declared(&[("a.toml", TOML)]).unwrap()));
        let report = json!({"name": "daily-report", "cron": "0 2 * * *", "start_at": "2026-12-01T15:00:00Z",
            "job": {"type": "report", "payload": {"full": true, "pages": [1, 2.5]}}});
        assert_eq!(bodies(&yaml), [report, json!({"name": "holidays", "days": ["2026-12-25"]})]);
        assert_eq!(yaml.schedules[0].to_string(), r#"a.yaml: schedules[0] ("daily-report")"#);
    }

    #[test]
    fn a_name_declared_twice_is_told_with_both_places() {
        let again = "schedules: [{name: x}, {name: daily-report}]";
        let problem = declared(&[("a.yaml", YAML), ("b.yml", again)]).unwrap_err();
        assert_eq!(
            problem,
            r#"b.yml: schedules[1] ("daily-report") is declared a second time, the first is a.yaml: schedules[0]"#
        );
        let elsewhere = "calendars: [{name: daily-report}]";
        assert!(declared(&[("a.yaml", YAML), ("b.yml", elsewhere)]).is_ok(), "a calendar is no schedule");
    }

    #[test]
    fn all_that_is_wrong_is_told_together_with_its_place() {
        let text = "schedules: [1, {cron: x}, {name: 7}, {name: ''}]\nworkflow: []\ncalendars: {}\n";
        let problems = declared(&[("a.yaml", text), ("b.toml", "x = ")]).unwrap_err();
        for part in [
            "a.yaml: schedules[0]: is not a set of fields",
            "a.yaml: schedules[1]: needs a `name`",
            "a.yaml: schedules[2]: needs a `name`",
            "a.yaml: schedules[3]: needs a `name`",
            "a.yaml: unknown section `workflow`, allowed are schedules, calendars, workflows",
            "a.yaml: `calendars` is not a list",
            "b.toml: line 1",
        ] {
            assert!(problems.contains(part), "{part}: {problems}");
        }
    }

    #[test]
    fn a_workflow_may_be_a_file_of_its_own() {
        let alone = "name: etl\ntasks: [{name: extract}]\n";
        let listed = "workflows: [{name: other, tasks: []}]\n";
        let found = declared(&[("a.yaml", alone), ("b.yaml", listed)]).unwrap();
        let places: Vec<String> = found.workflows.iter().map(Entry::to_string).collect();
        assert_eq!(places, [r#"a.yaml ("etl")"#, r#"b.yaml: workflows[0] ("other")"#]);
        let twice = declared(&[("a.yaml", alone), ("b.json", r#"{"workflows": [{"name": "etl"}]}"#)]);
        assert!(twice.unwrap_err().ends_with("the first is a.yaml"));
        let nameless = declared(&[("a.toml", "tasks = []")]).unwrap_err();
        assert!(nameless.starts_with("a.toml: needs a `name`"), "{nameless}");
    }

    #[test]
    fn an_empty_list_of_workflows_speaks_of_them_and_no_list_does_not() {
        let speaks =
            |text| declared(&[("a.yaml", "schedules: []"), ("b.yaml", text)]).unwrap().speaks_of_workflows;
        assert!(speaks("workflows: []"));
        assert!(speaks("name: etl\ntasks: []\n"));
        assert!(!speaks("calendars: []"));
    }

    #[test]
    fn a_file_that_declares_nothing_is_refused_rather_than_taken_for_an_empty_list() {
        for text in ["", "# nothing\n", "[]", "just text"] {
            let problem = declared(&[("a.yaml", text)]).unwrap_err();
            assert!(problem.starts_with("a.yaml: "), "{problem}");
        }
        assert!(declared(&[("a.yaml", "schedules: []")]).unwrap().schedules.is_empty());
    }

    #[test]
    fn a_directory_stands_for_its_files_in_their_order() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
        write("notes.txt", "{{{");
        assert!(read(&[directory.path().into()]).is_err(), "there is none of ours");
        write("b.toml", "schedules = [{name = \"b\"}]");
        write("a.yml", "schedules: [{name: a}]");
        write("c.yaml", "schedules: [{name: c}]");
        let names: Vec<_> =
            read(&[directory.path().into()]).unwrap().schedules.into_iter().map(|entry| entry.name).collect();
        assert_eq!(names, ["a", "b", "c"]);
        assert!(read(&[directory.path().join("notes.txt")]).is_err(), "its format cannot be told");
        assert!(read(&[directory.path().join("absent.yaml")]).is_err());
    }
}
