//! What is wrong with a configuration, and where: all of it at once, with the line and a caret where there is one.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The configuration file as a whole.
    File(PathBuf),
    /// A spot in the configuration file.
    Spot(Spot),
    /// An environment variable.
    Environment(String),
    /// A command-line flag.
    Flag(&'static str),
    /// Nowhere: it is the default.
    Default,
}

/// A spot in the configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spot {
    path: PathBuf,
    line: usize,
    column: usize,
    /// The text of the line and how many characters to underline; absent where the line may hold a secret.
    excerpt: Option<(String, usize)>,
}

impl Spot {
    /// The spot at `span` (bytes) of a file's `text`.
    pub fn new(path: PathBuf, text: &str, span: Range<usize>, secret: bool) -> Self {
        let start = (0..=span.start.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let line_text = text[line_start..].lines().next().unwrap_or_default();
        let column = text[line_start..start].chars().count() + 1;
        let underlined = text.get(start..span.end).unwrap_or_default();
        let room = (line_text.chars().count() + 1).saturating_sub(column);
        let underlined = underlined.chars().count().min(room).max(1);
        Self {
            path,
            line: text[..start].matches('\n').count() + 1,
            column,
            excerpt: (!secret).then(|| (line_text.to_owned(), underlined)),
        }
    }
}

impl Origin {
    /// Line and column in the file; whatever has none comes first.
    pub(super) fn position(&self) -> (usize, usize) {
        match self {
            Self::Spot(spot) => (spot.line, spot.column),
            _ => (0, 0),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Spot(spot) => write!(f, "{}:{}:{}", spot.path.display(), spot.line, spot.column),
            Self::Environment(name) => write!(f, "environment variable {name}"),
            Self::Flag(flag) => f.write_str(flag),
            Self::Default => f.write_str("by default"),
        }
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblem {
    /// Where.
    pub origin: Origin,
    /// Which setting, if it is about one.
    pub key: Option<&'static str>,
    /// What.
    pub message: String,
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.origin)?;
        if let Some(key) = self.key {
            write!(f, "{key}: ")?;
        }
        write!(f, "{}", self.message)?;
        if let Origin::Spot(Spot { line, column, excerpt: Some((text, underlined)), .. }) = &self.origin {
            let number = line.to_string();
            let margin = " ".repeat(number.len());
            // Tabs before the caret are repeated, so that it stands under its character at any tab width.
            let indent: String =
                text.chars().take(column - 1).map(|c| if c == '\t' { c } else { ' ' }).collect();
            write!(f, "\n  {number} | {text}\n  {margin} | {indent}{}", "^".repeat(*underlined))?;
        }
        Ok(())
    }
}

/// Everything that is wrong: never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems(pub Vec<ConfigProblem>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.len() {
            1 => write!(f, "the configuration has a problem:")?,
            count => write!(f, "the configuration has {count} problems:")?,
        }
        self.0.iter().try_for_each(|problem| write!(f, "\n{problem}"))
    }
}

impl std::error::Error for Problems {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caret_stands_under_what_is_wrong() {
        let text = "[engine]\nslots = 0 # nothing\n";
        let origin = Origin::Spot(Spot::new("t.toml".into(), text, 17..18, false));
        let problem = ConfigProblem { origin, key: Some("engine.slots"), message: "too few".into() };
        let expected = "t.toml:2:9: engine.slots: too few\n  2 | slots = 0 # nothing\n    |         ^";
        assert_eq!(problem.to_string(), expected);
    }

    #[test]
    fn a_span_beyond_the_end_or_inside_a_character_is_no_panic() {
        for span in [0..0, 1..2, 2..9, 90..99] {
            Spot::new("t.toml".into(), "é=", span.clone(), false);
            Spot::new("t.toml".into(), "", span, false);
        }
    }
}
