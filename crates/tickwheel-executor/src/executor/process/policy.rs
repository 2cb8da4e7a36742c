//! Which commands may run, and with which variables: the operator's word. Asked when a job is submitted and again when
//! it runs.
//!
//! A list of commands decides about programs, not about what they do: a shell or an interpreter on the list is every
//! program. Variables with which the loader or a shell would run other code are therefore refused beside a list.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Allows every command.
const ANY: &str = "*";
/// Where programs are searched for when nobody says.
pub(super) const PATH_DEFAULT: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Variables that make a program run other code than its own.
const TREACHEROUS: [&str; 15] = [
    "PATH",
    "IFS",
    "ENV",
    "BASH_ENV",
    "SHELLOPTS",
    "BASHOPTS",
    "PS4",
    "GCONV_PATH",
    "GLIBC_TUNABLES",
    "PERL5OPT",
    "PERL5LIB",
    "PYTHONPATH",
    "PYTHONHOME",
    "RUBYOPT",
    "NODE_OPTIONS",
];
const TREACHEROUS_PREFIXES: [&str; 2] = ["LD_", "DYLD_"];

/// What the operator allows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessPolicy {
    /// Absolute paths, names that are searched for in the server's `PATH`, or `*`.
    pub commands: Vec<String>,
}

/// Why something may not be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forbidden {
    /// What of the target it is about, as a JSON pointer into it.
    pub pointer: String,
    /// Why, in words.
    pub reason: String,
}

impl ProcessPolicy {
    /// Whether every command may run.
    fn allows_any(&self) -> bool {
        self.commands.iter().any(|allowed| allowed == ANY)
    }

    /// Refuses a command that may not run.
    pub fn check<'a>(
        &self,
        command: &[String],
        variables: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), Forbidden> {
        if self.allows_any() {
            return Ok(());
        }
        let program = command.first().map_or("", String::as_str);
        let is_allowed = |allowed: &String| {
            program == allowed || (is_name(program) && find_in_path(program, None).as_ref() == Some(allowed))
        };
        if !self.commands.iter().any(is_allowed) {
            let reason = format!("the operator of this server does not allow the command {program:?}");
            return Err(Forbidden { pointer: "/command/0".into(), reason });
        }
        match variables.into_iter().find(|name| is_treacherous(name)) {
            None => Ok(()),
            Some(name) => Err(Forbidden {
                pointer: format!("/env/{name}"),
                reason: format!(
                    "{name} could make the command run another one, which this server does not allow"
                ),
            }),
        }
    }

    /// The path of a program. If only some commands are allowed, the job does not decide where to look for them.
    pub(super) fn resolve(&self, program: &str, job_path: Option<&str>) -> Option<String> {
        if !is_name(program) {
            return Some(program.to_owned());
        }
        find_in_path(program, job_path.filter(|_| self.allows_any()))
    }
}

fn is_name(program: &str) -> bool {
    !program.contains('/')
}

fn is_treacherous(name: &str) -> bool {
    TREACHEROUS.contains(&name) || TREACHEROUS_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

fn find_in_path(name: &str, path: Option<&str>) -> Option<String> {
    let own = std::env::var("PATH").unwrap_or_else(|_| PATH_DEFAULT.into());
    let path = path.unwrap_or(&own);
    // An empty entry would be whatever directory the command runs in.
    let folders = path.split(':').filter(|folder| folder.starts_with('/'));
    let candidates = folders.map(|folder| Path::new(folder).join(OsStr::new(name)));
    let is_program = |file: &Path| {
        file.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    candidates.into_iter().find(|file| is_program(file)).map(|file| file.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(commands: &[&str]) -> ProcessPolicy {
        ProcessPolicy { commands: commands.iter().map(|command| (*command).to_owned()).collect() }
    }

    fn pointer(policy: &ProcessPolicy, program: &str, variables: &[&str]) -> Option<String> {
        let command = [program.to_owned(), "x".to_owned()];
        policy.check(&command, variables.iter().copied()).err().map(|forbidden| forbidden.pointer)
    }

    #[test]
    fn a_listed_path_is_allowed_and_no_other_way_to_write_it() {
        let sh = find_in_path("sh", None).unwrap();
        let listed = policy(&[&sh, "/opt/backup"]);
        for allowed in ["/opt/backup", &sh, "sh"] {
            assert_eq!(pointer(&listed, allowed, &["A"]), None, "{allowed}");
        }
        for refused in
            ["backup", "/opt/backup/", "/opt//backup", "/opt/../opt/backup", "./sh", "cat", "", "*"]
        {
            assert_eq!(pointer(&listed, refused, &[]).as_deref(), Some("/command/0"), "{refused}");
        }
    }

    #[test]
    fn a_listed_name_is_allowed_as_a_name() {
        let listed = policy(&["sh"]);
        assert_eq!(pointer(&listed, "sh", &[]), None);
        for refused in ["/tmp/sh", "./sh", "bash"] {
            assert!(pointer(&listed, refused, &[]).is_some(), "{refused}");
        }
    }

    #[test]
    fn an_empty_list_allows_nothing_and_a_star_everything() {
        assert!(pointer(&policy(&[]), "sh", &[]).is_some());
        assert_eq!(pointer(&policy(&["*"]), "/anything", &["LD_PRELOAD", "PATH"]), None);
    }

    #[test]
    fn beside_a_list_a_job_cannot_slip_in_other_code() {
        let listed = policy(&["sh"]);
        for name in ["LD_PRELOAD", "LD_AUDIT", "PATH", "BASH_ENV", "PYTHONPATH"] {
            assert_eq!(pointer(&listed, "sh", &["A", name]), Some(format!("/env/{name}")));
        }
        assert_eq!(pointer(&listed, "sh", &["A", "PATHS", "OLD_LD"]), None);
    }

    #[test]
    fn only_where_everything_is_allowed_does_a_job_say_where_programs_are() {
        let anywhere = policy(&["*"]);
        let sh = find_in_path("sh", None).unwrap();
        assert_eq!(anywhere.resolve("sh", None), Some(sh.clone()));
        assert_eq!(anywhere.resolve("sh", Some("/nowhere::.")), None);
        assert_eq!(policy(&["sh"]).resolve("sh", Some("/nowhere")), Some(sh));
        assert_eq!(anywhere.resolve("./x", Some("/nowhere")).as_deref(), Some("./x"));
    }
}
