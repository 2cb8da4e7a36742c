//! The seeds of the fuzzer go through its checks, so that neither can rot.

use std::collections::BTreeSet;
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use tickwheel_checks::CHECKS;

fn fuzz_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

/// The names in a folder, without the ending of files.
fn names_in(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let stem = |path: PathBuf| path.file_stem().expect("a file has a name").to_string_lossy().into_owned();
    entries.map(|entry| stem(entry.expect("it can be listed").path())).collect()
}

#[test]
fn every_seed_passes_its_check() {
    let mut failed = Vec::new();
    for (name, check) in CHECKS {
        let seeds = fs::read_dir(fuzz_dir().join("seeds").join(name)).unwrap();
        for path in seeds.map(|entry| entry.unwrap().path()) {
            let seed = fs::read(&path).unwrap();
            if catch_unwind(|| check(&seed)).is_err() {
                failed.push(format!("{name}/{}", path.file_name().unwrap().display()));
            }
        }
    }
    assert!(failed.is_empty(), "these fail, in this order: {failed:?}");
}

#[test]
fn every_check_has_a_target_and_seeds_and_there_are_no_others() {
    let checks: BTreeSet<String> = CHECKS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names_in(&fuzz_dir().join("fuzz_targets")), checks);
    assert_eq!(names_in(&fuzz_dir().join("seeds")), checks);
    assert_eq!(names_in(&fuzz_dir().join("dictionaries")), checks);
}
