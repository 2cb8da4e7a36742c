//! How a setting's value is read from TOML or from a word in the environment, and how it is shown again.
//!
//! Messages never repeat a value that may be a secret.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use tickwheel_executor::outbound::SigningSecret;
use tickwheel_protocol::Span;

/// A value before its type is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Raw {
    /// From the environment or a flag: means whatever the setting's type makes of it.
    Word(String),
    /// A TOML string.
    Text(String),
    /// A TOML integer, in decimal.
    Integer(i64),
    /// A TOML boolean.
    Bool(bool),
    /// A TOML array.
    List(Vec<Raw>),
    /// Anything else TOML can say; no setting wants it.
    Other(&'static str),
}

impl Raw {
    fn as_text(&self) -> Option<&str> {
        match self {
            Self::Word(text) | Self::Text(text) => Some(text),
            _ => None,
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Word(_) | Self::Text(_) => "a string",
            Self::Integer(_) => "an integer",
            Self::Bool(_) => "a boolean",
            Self::List(_) => "an array",
            Self::Other(kind) => kind,
        }
    }

    fn is_not<T: Value>(&self) -> String {
        match self {
            Self::Word(word) => format!("{word:?} is not {}", T::TYPE),
            other => format!("must be {}, not {}", T::TYPE, other.kind()),
        }
    }
}

/// The type of a setting.
pub trait Value: Sized {
    /// What to call it, with its article.
    const TYPE: &'static str;

    /// Reads it, or says what is wrong.
    fn read(raw: &Raw) -> Result<Self, String>;

    /// Shows it as TOML; `None` if it is not set.
    fn show(&self) -> Option<String>;
}

macro_rules! whole_number {
    ($($number:ty),+) => {$(
        impl Value for $number {
            const TYPE: &'static str = "a whole number";

            fn read(raw: &Raw) -> Result<Self, String> {
                match raw {
                    Raw::Integer(number) => <$number>::try_from(*number).map_err(|_| format!("{number} is out of range")),
                    Raw::Word(word) => word.replace('_', "").parse().map_err(|_| raw.is_not::<Self>()),
                    _ => Err(raw.is_not::<Self>()),
                }
            }

            fn show(&self) -> Option<String> {
                Some(self.to_string())
            }
        }
    )+};
}

whole_number!(u32, u64, usize);

impl Value for bool {
    const TYPE: &'static str = "true or false";

    fn read(raw: &Raw) -> Result<Self, String> {
        match raw {
            Raw::Bool(value) => Ok(*value),
            Raw::Word(word) => match word.to_ascii_lowercase().as_str() {
                "true" | "1" | "yes" | "on" => Ok(true),
                "false" | "0" | "no" | "off" => Ok(false),
                _ => Err(raw.is_not::<Self>()),
            },
            _ => Err(raw.is_not::<Self>()),
        }
    }

    fn show(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl Value for Duration {
    const TYPE: &'static str = "a duration such as \"250ms\", \"30s\" or \"5m\"";

    fn read(raw: &Raw) -> Result<Self, String> {
        match raw {
            Raw::Integer(seconds) => {
                u64::try_from(*seconds).map(Self::from_secs).map_err(|_| raw.is_not::<Self>())
            }
            _ => {
                let text = raw.as_text().ok_or_else(|| raw.is_not::<Self>())?;
                text.parse().map(Span::as_duration).map_err(|_| format!("{text:?} is not {}", Self::TYPE))
            }
        }
    }

    fn show(&self) -> Option<String> {
        let ms = u64::try_from(self.as_millis()).unwrap_or(u64::MAX);
        Some(quoted(&Span::from_millis(ms).to_string()))
    }
}

impl Value for SocketAddr {
    const TYPE: &'static str = "an address with a port such as \"127.0.0.1:7180\"";

    fn read(raw: &Raw) -> Result<Self, String> {
        let text = raw.as_text().ok_or_else(|| raw.is_not::<Self>())?;
        text.replace("localhost:", "127.0.0.1:")
            .parse()
            .map_err(|_| format!("{text:?} is not {}", Self::TYPE))
    }

    fn show(&self) -> Option<String> {
        Some(quoted(&self.to_string()))
    }
}

impl Value for PathBuf {
    const TYPE: &'static str = "a path";

    fn read(raw: &Raw) -> Result<Self, String> {
        match raw.as_text() {
            Some("") => Err("must not be empty".into()),
            Some(text) => Ok(Self::from(text)),
            None => Err(raw.is_not::<Self>()),
        }
    }

    fn show(&self) -> Option<String> {
        Some(quoted(&self.display().to_string()))
    }
}

/// A part of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Answers requests.
    Api,
    /// Decides what runs when.
    Scheduler,
    /// Runs jobs with the built-in executors.
    Worker,
}

impl Role {
    /// All parts.
    pub const ALL: [Self; 3] = [Self::Api, Self::Scheduler, Self::Worker];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Scheduler => "scheduler",
            Self::Worker => "worker",
        }
    }
}

/// The parts that run in this process: at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roles(Vec<Role>);

impl Roles {
    /// Whether a part runs here.
    pub fn has(&self, role: Role) -> bool {
        self.0.contains(&role)
    }
}

impl Default for Roles {
    fn default() -> Self {
        Self(Role::ALL.to_vec())
    }
}

impl Value for Roles {
    const TYPE: &'static str = "a list of api, scheduler, worker";

    fn read(raw: &Raw) -> Result<Self, String> {
        let mut roles = Vec::new();
        for word in words(raw).ok_or_else(|| raw.is_not::<Self>())? {
            let role = Role::ALL.into_iter().find(|role| role.as_str() == word);
            let role = role.ok_or_else(|| format!("unknown role {word:?}: use api, scheduler, worker"))?;
            if !roles.contains(&role) {
                roles.push(role);
            }
        }
        if roles.is_empty() { Err("must name at least one role".into()) } else { Ok(Self(roles)) }
    }

    fn show(&self) -> Option<String> {
        let words: Vec<_> = self.0.iter().map(|role| quoted(role.as_str())).collect();
        Some(format!("[{}]", words.join(", ")))
    }
}

/// Names of hosts, without ports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostNames(Vec<String>);

impl HostNames {
    /// The names as they were given.
    pub fn names(&self) -> impl Iterator<Item = String> {
        self.0.iter().cloned()
    }
}

impl Value for HostNames {
    const TYPE: &'static str = "a list of host names such as \"jobs.example.com\"";

    fn read(raw: &Raw) -> Result<Self, String> {
        let names = words(raw).ok_or_else(|| raw.is_not::<Self>())?;
        let is_name = |name: &&str| {
            !name.is_empty()
                && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        };
        match names.iter().find(|name| **name != "*" && !is_name(name)) {
            Some(wrong) => Err(format!("{wrong:?} is not a host name: leave out scheme, port and path")),
            None => Ok(Self(names.into_iter().map(str::to_owned).collect())),
        }
    }

    fn show(&self) -> Option<String> {
        let names: Vec<_> = self.0.iter().map(|name| quoted(name)).collect();
        Some(format!("[{}]", names.join(", ")))
    }
}

macro_rules! word_list {
    ($(#[$meta:meta])* $name:ident, $kind:literal, $default:expr, $is_word:expr, $expected:literal) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name(Vec<String>);

        impl $name {
            /// The words as they were given.
            pub fn words(&self) -> &[String] {
                &self.0
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self($default.map(str::to_owned).to_vec())
            }
        }

        impl Value for $name {
            const TYPE: &'static str = $kind;

            fn read(raw: &Raw) -> Result<Self, String> {
                let given = words(raw).ok_or_else(|| raw.is_not::<Self>())?;
                let is_word: fn(&str) -> bool = $is_word;
                match given.iter().find(|word| !is_word(word)) {
                    Some(wrong) => Err(format!(concat!("{:?} is not ", $expected), wrong)),
                    None => Ok(Self(given.into_iter().map(str::to_owned).collect())),
                }
            }

            fn show(&self) -> Option<String> {
                let words: Vec<_> = self.0.iter().map(|word| quoted(word)).collect();
                Some(format!("[{}]", words.join(", ")))
            }
        }
    };
}

word_list! {
    /// Commands that jobs may run.
    CommandNames, "a list of commands such as \"/usr/bin/backup\"", ["*"],
    |word| !word.is_empty() && (word.starts_with('/') || !word.contains('/')),
    "an absolute path or the name of a program"
}

word_list! {
    /// Variables that commands get.
    VariableNames, "a list of environment variables such as \"LANG\"", ["PATH", "LANG", "LC_*", "TZ"],
    |word| {
        let name = word.strip_suffix('*').unwrap_or(word);
        !word.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    },
    "the name of a variable"
}

/// A user of this machine. Whether there is one shows when the server starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserName(String);

impl UserName {
    /// As it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Value for Option<UserName> {
    const TYPE: &'static str = "a user such as \"nobody\" or \"65534:65534\"";

    fn read(raw: &Raw) -> Result<Self, String> {
        match raw {
            Raw::Integer(number) => Ok(Some(UserName(number.to_string()))),
            _ => match raw.as_text() {
                Some("") => Err("must not be empty".into()),
                Some(text) => Ok(Some(UserName(text.into()))),
                None => Err(raw.is_not::<Self>()),
            },
        }
    }

    fn show(&self) -> Option<String> {
        self.as_ref().map(|user| quoted(&user.0))
    }
}

/// The words of a list, or of a line with commas; `None` if it is neither.
fn words(raw: &Raw) -> Option<Vec<&str>> {
    match raw {
        Raw::List(items) => items.iter().map(Raw::as_text).collect(),
        Raw::Word(text) | Raw::Text(text) if text.trim().is_empty() => Some(Vec::new()),
        Raw::Word(text) | Raw::Text(text) => Some(text.split(',').map(str::trim).collect()),
        _ => None,
    }
}

/// Which store keeps the jobs.
#[derive(Clone, PartialEq, Eq)]
pub enum StoreUrl {
    /// The embedded one, in the data directory.
    Sqlite,
    /// A PostgreSQL database, by its URL. It may hold a password: use it, never print it.
    Postgres(String),
}

impl StoreUrl {
    /// The URL with its password masked.
    pub fn masked(&self) -> String {
        let Self::Postgres(url) = self else { return "sqlite".into() };
        let (scheme, rest) = url.split_once("://").unwrap_or(("postgres", url));
        let (address, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        let address = match address.rsplit_once('@') {
            Some((user, host)) => match user.split_once(':') {
                Some((name, _)) => format!("{name}:***@{host}"),
                None => format!("{user}@{host}"),
            },
            None => address.to_owned(),
        };
        // Parameters can carry a password as well, and nobody needs them to recognise the database.
        let parameters = if parameters.is_empty() { "" } else { "?***" };
        format!("{scheme}://{address}{parameters}")
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.masked())
    }
}

impl Value for StoreUrl {
    const TYPE: &'static str = "\"sqlite\" or a URL such as \"postgres://user@host/database\"";

    fn read(raw: &Raw) -> Result<Self, String> {
        match raw.as_text() {
            Some("sqlite") => Ok(Self::Sqlite),
            Some(url) if url.starts_with("postgres://") || url.starts_with("postgresql://") => {
                Ok(Self::Postgres(url.into()))
            }
            _ => Err(format!("must be {}", Self::TYPE)),
        }
    }

    fn show(&self) -> Option<String> {
        Some(quoted(&self.masked()))
    }
}

impl Value for Option<SigningSecret> {
    const TYPE: &'static str = "`whsec_` and 24 to 64 random bytes in base64";

    fn read(raw: &Raw) -> Result<Self, String> {
        let text = raw.as_text().ok_or_else(|| raw.is_not::<Self>())?;
        SigningSecret::parse(text).map(Some).map_err(|error| error.to_string())
    }

    fn show(&self) -> Option<String> {
        self.as_ref().map(|_| quoted("***"))
    }
}

/// For whom the log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// A line of text each, for people.
    #[default]
    Text,
    /// A JSON object a line, for machines.
    Json,
}

impl Value for LogFormat {
    const TYPE: &'static str = "\"text\" or \"json\"";

    fn read(raw: &Raw) -> Result<Self, String> {
        match raw.as_text() {
            Some("text") => Ok(Self::Text),
            Some("json") => Ok(Self::Json),
            _ => Err(format!("must be {}", Self::TYPE)),
        }
    }

    fn show(&self) -> Option<String> {
        Some(quoted(match self {
            Self::Text => "text",
            Self::Json => "json",
        }))
    }
}

/// What is logged: a level, or levels by module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFilter(String);

impl LogFilter {
    /// The filter in `tracing`'s words.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for LogFilter {
    fn default() -> Self {
        Self("info".into())
    }
}

impl Value for LogFilter {
    const TYPE: &'static str = "a level (error, warn, info, debug, trace) or levels by module such as \"info,tickwheel_store=debug\"";

    fn read(raw: &Raw) -> Result<Self, String> {
        let text = raw.as_text().ok_or_else(|| raw.is_not::<Self>())?;
        let wrong = || format!("{text:?} is not {}", Self::TYPE);
        tracing_subscriber::EnvFilter::try_new(text).map_err(|_| wrong())?;
        // The filter takes any lone word for a module's name; a mistyped level would silence everything.
        let levels = ["error", "warn", "info", "debug", "trace", "off"];
        let lone =
            |part: &str| !part.contains('=') && !levels.contains(&part.trim().to_ascii_lowercase().as_str());
        if text.split(',').any(lone) { Err(wrong()) } else { Ok(Self(text.into())) }
    }

    fn show(&self) -> Option<String> {
        Some(quoted(&self.0))
    }
}

/// A TOML string.
fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(text: &str) -> Raw {
        Raw::Word(text.into())
    }

    #[test]
    fn a_password_never_shows() {
        for (url, shown) in [
            ("postgres://ann:s3cret@db.example/jobs", "postgres://ann:***@db.example/jobs"),
            ("postgresql://ann:s3:c@ret@db/jobs", "postgresql://ann:***@db/jobs"),
            ("postgres://ann@db/jobs", "postgres://ann@db/jobs"),
            ("postgres://db/jobs?password=s3cret", "postgres://db/jobs?***"),
        ] {
            let url = StoreUrl::read(&word(url)).unwrap();
            assert_eq!(url.masked(), shown);
            assert!(!format!("{url:?}").contains("s3"));
        }
        let secret = Option::<SigningSecret>::read(&word("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")).unwrap();
        assert!(!format!("{secret:?} {:?}", secret.show()).contains("MfKQ"));
    }

    #[test]
    fn a_refused_secret_is_not_repeated() {
        let message = Option::<SigningSecret>::read(&word("tooshort")).unwrap_err();
        assert!(!message.contains("tooshort"));
        let message = StoreUrl::read(&word("mysql://ann:s3cret@db")).unwrap_err();
        assert!(!message.contains("s3cret"));
    }

    #[test]
    fn a_word_from_the_environment_becomes_the_type_it_is_for() {
        assert_eq!(bool::read(&word("Yes")), Ok(true));
        assert_eq!(bool::read(&word("0")), Ok(false));
        assert_eq!(usize::read(&word("200_000")), Ok(200_000));
        assert_eq!(Duration::read(&word("250ms")), Ok(Duration::from_millis(250)));
        assert!(bool::read(&word("maybe")).is_err());
        assert!(usize::read(&word("-1")).is_err());
    }

    #[test]
    fn toml_types_are_not_converted_into_one_another() {
        assert!(usize::read(&Raw::Text("5".into())).is_err());
        assert!(bool::read(&Raw::Integer(1)).is_err());
        assert!(PathBuf::read(&Raw::Bool(true)).is_err());
        assert!(u32::read(&Raw::Integer(-1)).is_err());
    }

    #[test]
    fn a_mistyped_level_is_refused_rather_than_taken_for_a_module() {
        assert!(LogFilter::read(&word("inof")).is_err());
        assert!(LogFilter::read(&word("info,tickwheel_store=debug")).is_ok());
        assert!(LogFilter::read(&word("tickwheel=loud")).is_err());
    }

    #[test]
    fn host_names_stand_alone() {
        let list = Raw::List(vec![Raw::Text("jobs".into()), Raw::Text("jobs.example.com".into())]);
        assert_eq!(HostNames::read(&word("jobs, jobs.example.com")), HostNames::read(&list));
        assert_eq!(HostNames::read(&word("")), Ok(HostNames::default()));
        assert!(HostNames::read(&word("*")).is_ok());
        for wrong in ["http://jobs", "jobs:7180", "jobs/", "a,,b", "*.example.com"] {
            assert!(HostNames::read(&word(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_command_is_a_path_or_a_name_and_a_variable_may_end_with_a_star() {
        let commands = CommandNames::read(&word("/usr/bin/backup, rsync")).unwrap();
        assert_eq!(commands.words(), ["/usr/bin/backup", "rsync"]);
        assert_eq!(CommandNames::read(&word("")).unwrap().words(), [""; 0], "nothing at all");
        assert!(CommandNames::read(&word("bin/backup")).is_err());
        assert!(VariableNames::read(&word("LANG,LC_*,*")).is_ok());
        for wrong in ["A=b", "L*C", "A B"] {
            assert!(VariableNames::read(&word(wrong)).is_err(), "{wrong}");
        }
        assert_eq!(Option::<UserName>::read(&Raw::Integer(33)).unwrap().unwrap().as_str(), "33");
    }

    #[test]
    fn roles_are_read_from_a_list_or_a_line() {
        let list = Raw::List(vec![Raw::Text("api".into()), Raw::Text("worker".into())]);
        let roles = Roles::read(&list).unwrap();
        assert!(roles.has(Role::Api) && roles.has(Role::Worker) && !roles.has(Role::Scheduler));
        assert_eq!(Roles::read(&word("api, worker")), Ok(roles));
        assert!(Roles::read(&word("api,cook")).is_err());
        assert!(Roles::read(&Raw::List(vec![])).is_err());
    }
}
