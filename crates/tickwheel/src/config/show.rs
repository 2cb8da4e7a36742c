//! The effective configuration as a TOML file, secrets masked.

use super::{Config, SETTINGS};

/// `config` as TOML. Secrets are masked, and what is not set stands there as a comment.
pub fn show(config: &Config) -> String {
    let mut out = String::new();
    let mut section = "";
    for setting in SETTINGS {
        let (of, name) = setting.section_and_name();
        if of != section {
            if !section.is_empty() {
                out.push('\n');
            }
            out.push_str(&format!("[{of}]\n"));
            section = of;
        }
        match setting.show(config) {
            Some(value) => out.push_str(&format!("{name} = {value}\n")),
            None => out.push_str(&format!("# {name} is not set\n")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Sources, load};

    #[test]
    fn what_is_shown_can_be_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tickwheel.toml");
        let shown = show(&Config::default());
        std::fs::write(&path, &shown).unwrap();
        let again = load(&Sources { file: Some(&path), env: &|_| None, flags: &[] }).unwrap();
        assert_eq!(show(&again), shown);
    }
}
