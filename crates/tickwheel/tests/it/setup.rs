//! What the project installs by itself, and when.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// On a machine that has a compiler and nothing else: no PostgreSQL, no Python, nobody who could install them.
#[test]
fn running_needs_nothing_but_a_compiler() {
    let bare = tempfile::tempdir().unwrap();
    for tool in ["bash", "dirname"] {
        let found = ["/bin", "/usr/bin"].map(|folder| Path::new(folder).join(tool));
        let found = found.iter().find(|path| path.exists()).expect("every machine has it");
        symlink(found, bare.path().join(tool)).unwrap();
    }
    for tool in ["cargo", "make", "cc"] {
        symlink("/bin/true", bare.path().join(tool)).unwrap();
    }
    let setup = root().join("scripts/setup.sh");
    let done = Command::new(bare.path().join("bash")).arg(setup).arg("run").env("PATH", bare.path()).output();
    assert_eq!(text(&done.unwrap()), "");
    let makes =
        Command::new("make").args(["--dry-run", "run", "build"]).current_dir(root()).output().unwrap();
    let makes = text(&makes);
    let setups: Vec<&str> = makes.lines().filter(|line| line.contains("scripts/setup.sh")).collect();
    assert_eq!(setups, ["scripts/setup.sh run"; 2]);
}

#[test]
fn testing_needs_what_running_needs_and_more() {
    let needs = |purpose: &str| {
        let listed =
            Command::new(root().join("scripts/setup.sh")).args(["--list", purpose]).output().unwrap();
        text(&listed).lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(needs("run"), ["cargo", "make", "cc"]);
    let (checks, tests) = (needs("check"), needs("test"));
    assert!(checks.starts_with(&needs("run")) && tests.starts_with(&checks));
    for need in ["postgresql", "faketime"] {
        assert!(
            tests.iter().any(|found| found == need) && !checks.iter().any(|found| found == need),
            "{need}"
        );
    }
}
