//! The reference of the configuration lists exactly the settings there are.

use tickwheel::config::{Config, SETTINGS};

use crate::golden;

const PAGE: &str = "docs/reference/configuration.md";
const OPEN: &str = "<!-- settings: generated from the code; rewrite with UPDATE_GOLDEN=1 cargo test -p tickwheel config_reference -->\n";
const CLOSE: &str = "<!-- end of settings -->\n";

fn settings() -> String {
    let defaults = Config::default();
    let mut out = String::new();
    let mut section = "";
    for setting in SETTINGS {
        let (of, name) = setting.section_and_name();
        if of != section {
            out.push_str(&format!("\n## [{of}]\n\n| key | value | default | environment | flag | meaning |\n|---|---|---|---|---|---|\n"));
            section = of;
        }
        let default = setting.show(&defaults).map_or("not set".into(), |value| format!("`{value}`"));
        let flag = setting.flag.map_or(String::new(), |flag| format!("`{flag}`"));
        let (kind, env, about) = (setting.kind, setting.env(), setting.about);
        out.push_str(&format!("| `{name}` | {kind} | {default} | `{env}` | {flag} | {about} |\n"));
    }
    out.push('\n');
    out
}

#[test]
fn the_configuration_reference_lists_every_setting_with_its_default() {
    let page = std::fs::read_to_string(golden::repository_file(PAGE)).unwrap();
    let (before, rest) = page.split_once(OPEN).expect("the page has the opening mark");
    let (_, after) = rest.split_once(CLOSE).expect("the page has the closing mark");
    golden::assert_matches(PAGE, &format!("{before}{OPEN}{}{CLOSE}{after}", settings()));
}

/// The example on the page is a file somebody will copy.
#[test]
fn the_example_on_the_page_is_a_valid_configuration() {
    let page = std::fs::read_to_string(golden::repository_file(PAGE)).unwrap();
    let example = page.split_once("```toml\n").and_then(|(_, rest)| rest.split_once("```")).unwrap().0;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tickwheel.toml");
    std::fs::write(&path, example).unwrap();
    let sources = tickwheel::config::Sources { file: Some(&path), env: &|_| None, flags: &[] };
    if let Err(problems) = tickwheel::config::load(&sources) {
        panic!("{problems}");
    }
}
