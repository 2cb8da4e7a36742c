//! Published figures are those of the results on disk. `bench/run --table` writes the pages that quote them and knows
//! how to round; here it is only asked whether they still agree, and whether it would notice if they did not.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::golden::repository_file;

/// All that the command reads.
const FOLDERS: [&str; 3] = ["bench", "bench/runner", "bench/results"];
const PAGES: [&str; 2] = ["README.md", "docs/internals/performance.md"];

#[test]
fn every_page_says_what_the_results_say() {
    let checked = check(&repository_file(""));
    assert!(checked.status.success(), "rewrite the tables with `bench/run --table`:\n{}", said(&checked));
}

#[test]
fn a_figure_that_was_changed_by_hand_is_noticed() {
    for page in ["README.md", "bench/README.md", "docs/internals/performance.md"] {
        let copy = copy_of_the_pages();
        change(&copy.path().join(page), |text| {
            let end = text.find("<!-- end of figures -->").unwrap();
            let digit = text[..end].rfind(|c: char| c.is_ascii_digit() && c != '9').unwrap();
            text.replace_range(digit..=digit, "9");
        });
        assert_notices(copy.path(), page);
    }
}

#[test]
fn a_result_that_no_page_has_heard_of_is_noticed() {
    let copy = copy_of_the_pages();
    change(&copy.path().join("bench/results/B2.json"), |text| {
        *text = text.replacen("\"median\": ", "\"median\": 1", 1)
    });
    assert_notices(copy.path(), "README.md");
    assert_notices(copy.path(), "bench/results/B2.svg");
}

#[test]
fn a_run_that_failed_is_published_as_failed() {
    let copy = copy_of_the_pages();
    let file = copy.path().join("bench/results/B2.json");
    let mut result: serde_json::Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let ours = &mut result["cases"][0]["entrants"][0];
    assert_eq!(ours["role"], "ours");
    for number in ["min", "median", "max"] {
        ours[number] = serde_json::Value::Null;
    }
    ours["runs"] = serde_json::json!([]);
    ours["failed"] = serde_json::json!(["ended with 1", "ended with 1", "ended with 1"]);
    result.as_object_mut().unwrap().remove("commit");
    fs::write(&file, result.to_string()).unwrap();

    let written = table(copy.path(), &[]);
    assert!(written.status.success(), "{}", said(&written));
    let short = fs::read_to_string(copy.path().join("README.md")).unwrap();
    let row = short.lines().find(|line| line.starts_with("| jobs drained per second")).unwrap();
    assert!(row.contains("**failed**") && row.contains("commit unknown"), "{row}");
    let long = fs::read_to_string(copy.path().join("bench/README.md")).unwrap();
    assert!(long.contains("FAILED 3 of 3: ended with 1"));
    let goals = fs::read_to_string(copy.path().join("docs/internals/performance.md")).unwrap();
    let row = goals.lines().find(|line| line.starts_with("| B2 drain, PostgreSQL")).unwrap();
    assert!(row.contains("**failed**") && row.contains("**not met**"), "{row}");
}

fn assert_notices(root: &Path, page: &str) {
    let checked = check(root);
    let said = said(&checked);
    assert_eq!(checked.status.code(), Some(1), "{page} was changed:\n{said}");
    assert!(said.contains(&format!("--- {page}")), "{page} is not named:\n{said}");
}

fn check(root: &Path) -> Output {
    table(root, &["--check"])
}

fn table(root: &Path, more: &[&str]) -> Output {
    let mut command = Command::new("python3");
    command.env("PYTHONDONTWRITEBYTECODE", "1").arg(root.join("bench/run")).arg("--table").args(more);
    command.output().expect("python3 runs the benchmarks and is needed to check their tables")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn copy_of_the_pages() -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    let files = FOLDERS.iter().flat_map(|folder| {
        let entries = fs::read_dir(repository_file(folder)).unwrap().map(|entry| entry.unwrap());
        entries
            .filter(|entry| entry.file_type().unwrap().is_file())
            .map(move |entry| Path::new(folder).join(entry.file_name()))
    });
    for file in files.chain(PAGES.iter().map(|page| page.into())) {
        let to = copy.path().join(&file);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(repository_file(file.to_str().unwrap()), to).unwrap();
    }
    copy
}

fn change(file: &Path, with: impl FnOnce(&mut String)) {
    let mut text = fs::read_to_string(file).unwrap();
    with(&mut text);
    fs::write(file, text).unwrap();
}
