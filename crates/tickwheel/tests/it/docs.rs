//! The documentation says what the code says: every code and metric is in the reference and the reference invents none,
//! every link leads somewhere, every crate has its paragraph.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tickwheel_core::AttemptOutcome;
use tickwheel_core::settle::DeadReason;
use tickwheel_protocol::problem;

use crate::golden::repository_file;

const ERRORS: &str = "docs/reference/errors.md";
const METRICS: &str = "docs/reference/metrics.md";

#[test]
fn every_metric_is_in_the_reference_with_its_kind_and_nothing_else() {
    let engine = tickwheel_engine::metrics::ALL.iter().map(|metric| (metric.name, metric.kind));
    let http = tickwheel_api::metrics::ALL.iter().map(|metric| (metric.name, metric.kind));
    let page = read(METRICS);
    let mut expected = BTreeSet::new();
    let process = [(tickwheel::serve::log::DROPPED, "counter")];
    for (name, kind) in engine.chain(http).chain(process) {
        assert!(page.contains(&format!("| `{name}` | {kind} |")), "{METRICS} lacks the {kind} {name}");
        expected.insert(name.to_owned());
    }
    assert_eq!(names_in_tables(&page, 0), expected);
}

#[test]
fn every_problem_code_is_in_the_reference_with_its_status_and_nothing_else() {
    let section = section(&read(ERRORS), "## Problem codes");
    for code in problem::ALL {
        let row = format!("| {} | `{}` | {} |", code.status(), code.as_str(), code.explanation().trim());
        assert!(section.contains(&row), "{ERRORS} lacks the line\n{row}");
    }
    let expected = problem::ALL.iter().map(|code| code.as_str().to_owned()).collect();
    assert_eq!(names_in_tables(&section, 1), expected);
}

#[test]
fn every_failure_code_outcome_and_reason_is_in_the_reference() {
    let page = read(ERRORS);
    let failures = section(&page, "## Failure codes");
    for error in http_failures() {
        assert!(failures.contains(&format!("`{}`", error.code())), "{ERRORS} lacks {}", error.code());
    }
    let outcomes = section(&page, "## Outcomes of attempts");
    for outcome in AttemptOutcome::ALL {
        assert!(outcomes.contains(&format!("`{}`", outcome.as_str())), "{ERRORS} lacks {}", outcome.as_str());
    }
    let reasons = DeadReason::ALL.iter().map(|reason| reason.as_str().to_owned()).collect();
    assert_eq!(names_in_tables(&section(&page, "## Dead-letter reasons"), 0), reasons);
}

#[test]
fn every_relative_link_leads_to_a_file_and_a_heading() {
    let mut broken = Vec::new();
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for link in links(&text) {
            if !leads_somewhere(&page, &text, &link) {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "links that lead nowhere:\n{}", broken.join("\n"));
}

#[test]
fn the_workflow_of_the_guide_is_the_one_of_the_demo() {
    let demo = read("crates/tickwheel/src/serve/demo/etl.yaml");
    assert!(read("docs/guide/workflows.md").contains(&format!("```yaml\n# etl.yaml\n{demo}```")));
}

#[test]
fn every_page_is_in_the_index() {
    let index = read("docs/README.md");
    let docs = repository_file("docs");
    for page in pages().iter().filter(|page| page.starts_with(&docs)) {
        let path = page.strip_prefix(&docs).unwrap().display().to_string();
        assert!(path == "README.md" || index.contains(&format!("({path})")), "docs/README.md lacks {path}");
    }
}

#[test]
fn every_crate_has_its_place_in_the_architecture() {
    let page = read("ARCHITECTURE.md");
    assert!(page.lines().count() < 300, "ARCHITECTURE.md is meant to be read in one go");
    for entry in fs::read_dir(repository_file("crates")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(page.contains(&format!("**`{name}`**")), "ARCHITECTURE.md has no paragraph about {name}");
    }
}

/// One of each kind.
fn http_failures() -> Vec<tickwheel_executor::Error> {
    use tickwheel_executor::Error as E;
    let (host, text) = (String::new, String::new);
    vec![
        E::InvalidSecret(""),
        E::InvalidTarget(text()),
        E::NotSent(text()),
        E::TargetForbidden { host: host() },
        E::ConnectFailed { host: host(), reason: text() },
        E::ConnectTimedOut { host: host(), within: Duration::ZERO },
        E::TlsFailed(text()),
        E::ConnectionLost(text()),
        E::ResponseInvalid(text()),
    ]
}

fn read(path: &str) -> String {
    fs::read_to_string(repository_file(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// What stands between a heading and the next one of its kind.
fn section(page: &str, heading: &str) -> String {
    let (_, rest) = page.split_once(&format!("{heading}\n")).unwrap_or_else(|| panic!("no {heading:?}"));
    rest.split("\n## ").next().unwrap_or_default().to_owned()
}

/// The names that stand alone, in backticks, in a column of the page's tables.
fn names_in_tables(page: &str, column: usize) -> BTreeSet<String> {
    page.lines()
        .filter_map(|line| line.strip_prefix("| ")?.split(" | ").nth(column))
        .filter_map(|cell| cell.strip_prefix('`')?.strip_suffix('`'))
        .map(str::to_owned)
        .collect()
}

/// Every page a reader may come to.
fn pages() -> Vec<PathBuf> {
    let mut pages: Vec<_> = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md"]
        .map(repository_file)
        .into_iter()
        .collect();
    let mut folders = vec![repository_file("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages
}

/// The relative links of a page, outside code.
fn links(text: &str) -> Vec<String> {
    let prose = text.split("```").step_by(2).collect::<String>();
    let targets = prose.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    targets.map(|(target, _)| target.to_owned()).filter(|target| !target.contains("://")).collect()
}

fn leads_somewhere(page: &Path, text: &str, link: &str) -> bool {
    let (path, anchor) = link.split_once('#').map_or((link, None), |(path, anchor)| (path, Some(anchor)));
    let target = page.parent().unwrap().join(path);
    if !path.is_empty() && !target.exists() {
        return false;
    }
    let Some(anchor) = anchor else { return true };
    let text = if path.is_empty() { text.to_owned() } else { fs::read_to_string(target).unwrap_or_default() };
    text.lines().filter(|line| line.starts_with('#')).any(|heading| anchor_of(heading) == anchor)
}

/// The anchor GitHub gives to a heading.
fn anchor_of(heading: &str) -> String {
    let title = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}
