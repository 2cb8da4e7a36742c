//! Files that have to say what the code says. `UPDATE_GOLDEN=1 cargo test -p tickwheel` rewrites them.

use std::path::PathBuf;

/// The path of a file of the repository.
pub fn repository_file(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// Fails unless the file at `path` of the repository says exactly `expected`.
pub fn assert_matches(path: &str, expected: &str) {
    let file = repository_file(path);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, expected).unwrap();
    }
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    if let Some((number, (found, expected))) = first_difference(&found, expected) {
        panic!(
            "{path} is out of date at line {number}:\n  it says    {found:?}\n  the code   {expected:?}\n\
             rewrite it with UPDATE_GOLDEN=1 cargo test -p tickwheel"
        );
    }
}

fn first_difference<'a>(found: &'a str, expected: &'a str) -> Option<(usize, (&'a str, &'a str))> {
    let lines = found.lines().count().max(expected.lines().count());
    let line = |text: &'a str, index: usize| text.lines().nth(index).unwrap_or("(nothing)");
    (0..lines)
        .map(|index| (index + 1, (line(found, index), line(expected, index))))
        .find(|(_, (found, expected))| found != expected)
}
