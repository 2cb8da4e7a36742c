//! Puts a configuration together: defaults, then the file, then the environment, then flags.
//!
//! It never stops at the first problem: whoever corrects a configuration should see all of them.

use std::collections::HashMap;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Config;
use super::checks;
use super::problem::{ConfigProblem, Origin, Problems, Spot};
use super::settings::{SETTINGS, Setting};
use super::value::Raw;

/// A setting given on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flag {
    /// The flag, with its dashes.
    pub flag: &'static str,
    /// What was said.
    pub value: String,
}

/// Where settings may come from.
pub struct Sources<'a> {
    /// The configuration file, if there is one.
    pub file: Option<&'a Path>,
    /// Looks up an environment variable.
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// What the command line says.
    pub flags: &'a [Flag],
}

/// The configuration, or everything that is wrong with it.
pub fn load(sources: &Sources<'_>) -> Result<Config, Problems> {
    let mut loader = Loader::default();
    if let Some(path) = sources.file {
        loader.read_file(path);
    }
    loader.read_environment(sources.env);
    loader.read_flags(sources.flags);
    loader.finish()
}

#[derive(Default)]
struct Loader {
    config: Config,
    /// Where the value of a key that is not the default came from.
    origins: HashMap<&'static str, Origin>,
    problems: Vec<ConfigProblem>,
}

impl Loader {
    fn read_file(&mut self, path: &Path) {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) => {
                return self.refuse(Origin::File(path.into()), None, format!("cannot be read: {error}"));
            }
        };
        let file = File { path, text: &text };
        let (table, errors) = DeTable::parse_recoverable(&text);
        for error in &errors {
            self.refuse(file.origin(error.span().unwrap_or_default()), None, error.message().to_owned());
        }
        // What follows a mistake in the syntax may have ended up in the wrong section.
        if errors.is_empty() {
            for (section, value) in table.get_ref() {
                self.read_section(&file, section, value);
            }
        }
        // Tables come sorted by key; a reader goes through the file from top to bottom.
        self.problems.sort_by_key(|problem| problem.origin.position());
    }

    fn read_section(
        &mut self,
        file: &File<'_>,
        section: &Spanned<std::borrow::Cow<'_, str>>,
        value: &Spanned<DeValue<'_>>,
    ) {
        let name = section.get_ref();
        if !SETTINGS.iter().any(|setting| setting.section_and_name().0 == name) {
            let message = format!("unknown section [{name}]; there are {}", sections().join(", "));
            return self.refuse(file.origin(section.span()), None, message);
        }
        let DeValue::Table(table) = value.get_ref() else {
            return self.refuse(
                file.origin(section.span()),
                None,
                format!("write it as a section: [{name}]"),
            );
        };
        for (key, value) in table {
            match Setting::find(&format!("{name}.{}", key.get_ref())) {
                Some(setting) => {
                    self.set(setting, &raw(value.get_ref()), file.origin_of(setting, value.span()))
                }
                None => {
                    let known = keys_of(name).join(", ");
                    let message = format!("unknown key `{}` in [{name}]; there are {known}", key.get_ref());
                    self.refuse(file.origin(key.span()), None, message);
                }
            }
        }
    }

    fn read_environment(&mut self, env: &dyn Fn(&str) -> Option<String>) {
        for setting in SETTINGS {
            let name = setting.env();
            // An empty variable is how many tools say "not set".
            if let Some(value) = env(&name).filter(|value| !value.is_empty()) {
                self.set(setting, &Raw::Word(value), Origin::Environment(name));
            }
        }
    }

    fn read_flags(&mut self, flags: &[Flag]) {
        for Flag { flag, value } in flags {
            let setting = SETTINGS.iter().find(|setting| setting.flag == Some(flag));
            let setting =
                setting.expect("every flag of `serve` that is a setting stands in the list of settings");
            self.set(setting, &Raw::Word(value.clone()), Origin::Flag(flag));
        }
    }

    fn set(&mut self, setting: &'static Setting, value: &Raw, origin: Origin) {
        match setting.set(&mut self.config, value) {
            Ok(()) => drop(self.origins.insert(setting.key, origin)),
            Err(message) => self.refuse(origin, Some(setting.key), message),
        }
    }

    fn refuse(&mut self, origin: Origin, key: Option<&'static str>, message: String) {
        self.problems.push(ConfigProblem { origin, key, message });
    }

    fn finish(mut self) -> Result<Config, Problems> {
        let refused: Vec<_> = self.problems.iter().filter_map(|problem| problem.key).collect();
        for contradiction in checks::contradictions(&self.config) {
            // A value that was refused has its default here, and its contradictions would be news to the reader.
            if !contradiction.keys.iter().any(|key| refused.contains(key)) {
                let key = contradiction.keys[0];
                let origin = self.origins.get(key).cloned().unwrap_or(Origin::Default);
                self.refuse(origin, Some(key), contradiction.message);
            }
        }
        if self.problems.is_empty() { Ok(self.config) } else { Err(Problems(self.problems)) }
    }
}

struct File<'a> {
    path: &'a Path,
    text: &'a str,
}

impl File<'_> {
    /// A place that is not the value of a known setting. The line may still hold a secret, so one that names a secret
    /// setting is not shown.
    fn origin(&self, span: std::ops::Range<usize>) -> Origin {
        let line_start =
            self.text.get(..span.start).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1);
        let line = self.text[line_start..].lines().next().unwrap_or_default();
        let secret =
            SETTINGS.iter().any(|setting| setting.secret && line.contains(setting.section_and_name().1));
        self.spot(span, secret)
    }

    fn origin_of(&self, setting: &Setting, span: std::ops::Range<usize>) -> Origin {
        self.spot(span, setting.secret)
    }

    fn spot(&self, span: std::ops::Range<usize>, secret: bool) -> Origin {
        Origin::Spot(Spot::new(self.path.into(), self.text, span, secret))
    }
}

fn raw(value: &DeValue<'_>) -> Raw {
    match value {
        DeValue::String(text) => Raw::Text(text.to_string()),
        DeValue::Integer(integer) => i64::from_str_radix(integer.as_str(), integer.radix())
            .map_or(Raw::Other("a number that large"), Raw::Integer),
        DeValue::Boolean(value) => Raw::Bool(*value),
        DeValue::Array(items) => Raw::List(items.iter().map(|item| raw(item.get_ref())).collect()),
        DeValue::Float(_) => Raw::Other("a fraction"),
        DeValue::Datetime(_) => Raw::Other("a date"),
        DeValue::Table(_) => Raw::Other("a table"),
    }
}

fn sections() -> Vec<String> {
    let mut sections: Vec<_> =
        SETTINGS.iter().map(|setting| format!("[{}]", setting.section_and_name().0)).collect();
    sections.dedup();
    sections
}

fn keys_of(section: &str) -> Vec<&'static str> {
    let of_section = SETTINGS.iter().map(Setting::section_and_name).filter(|(of, _)| *of == section);
    of_section.map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn load_with(
        file: &str,
        env: &[(&str, &str)],
        flags: &[(&'static str, &str)],
    ) -> Result<Config, Problems> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tickwheel.toml");
        std::fs::write(&path, file).unwrap();
        let env = |name: &str| env.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
        let flags: Vec<_> = flags.iter().map(|(flag, v)| Flag { flag, value: (*v).to_owned() }).collect();
        load(&Sources { file: Some(&path), env: &env, flags: &flags })
    }

    fn messages(result: Result<Config, Problems>) -> Vec<String> {
        let problems = result.err().map(|problems| problems.0).unwrap_or_default();
        problems.iter().map(|problem| format!("{} {}", problem.key.unwrap_or("-"), problem.message)).collect()
    }

    #[test]
    fn a_flag_beats_the_environment_which_beats_the_file_which_beats_the_default() {
        let file =
            "[server]\nlisten = '127.0.0.1:1'\n[engine]\nslots = 7\nlease = 20\n[store]\ndata_dir = 'a'";
        let env = [("TICKWHEEL_LISTEN", "127.0.0.1:2"), ("TICKWHEEL_ENGINE_SLOTS", "8")];
        let config = load_with(file, &env, &[("--listen", "127.0.0.1:3")]).unwrap();
        assert_eq!(config.server.listen.port(), 3);
        assert_eq!(config.engine.slots, 8);
        assert_eq!(config.engine.lease, Duration::from_secs(20));
        assert_eq!(config.store.pool_size, Config::default().store.pool_size);
    }

    #[test]
    fn all_problems_are_reported_together() {
        let file = "[engine]\nslots = 0\nlanes = 3\n[kitchen]\nx = 1\n[log]\nformat = 5\n";
        let found = messages(load_with(file, &[("TICKWHEEL_DEMO", "perhaps")], &[("--store", "mysql://x")]));
        assert_eq!(found.len(), 6, "{found:#?}");
        assert!(found[0].contains("slots") && found[1].contains("lanes"), "in the file's order: {found:#?}");
        for part in [
            "engine.slots must be from 1",
            "unknown key `lanes`",
            "[kitchen]",
            "log.format",
            "server.demo",
            "store.url",
        ] {
            assert!(found.iter().any(|message| message.contains(part)), "{part} in {found:#?}");
        }
    }

    #[test]
    fn every_mistake_in_the_syntax_is_shown_with_its_line() {
        let problems = load_with("[engine]\nslots = \nlease = ?\n", &[], &[]).unwrap_err().to_string();
        assert!(
            problems.contains("tickwheel.toml:2:") && problems.contains("tickwheel.toml:3:"),
            "{problems}"
        );
    }

    #[test]
    fn a_line_with_a_secret_is_never_shown() {
        for file in [
            "[http]\nsigning_secret = 'pssst'\n",
            "[http]\nsigning_secret = 'pssst\n",
            "[store]\nurl = 'my://u:pssst@h'\n",
        ] {
            let problems = load_with(file, &[], &[]).unwrap_err().to_string();
            assert!(!problems.contains("pssst"), "{problems}");
        }
    }

    #[test]
    fn an_empty_variable_counts_as_not_set() {
        assert!(load_with("", &[("TICKWHEEL_LISTEN", "")], &[]).is_ok());
    }

    #[test]
    fn a_missing_file_is_a_problem_of_its_own() {
        let missing = Path::new("/nowhere/tickwheel.toml");
        let problems = load(&Sources { file: Some(missing), env: &|_| None, flags: &[] }).unwrap_err();
        assert!(problems.to_string().contains("cannot be read"));
    }
}
