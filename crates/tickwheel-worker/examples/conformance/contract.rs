//! The types of jobs: their payloads and results.

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use tickwheel_worker::JobType;

macro_rules! job_types {
    ($($name:literal $payload:ty => $output:ty;)+) => {
        $(impl JobType for $payload {
            const NAME: &'static str = $name;
            type Output = $output;
        })+
    };
}

job_types! {
    "echo" Echo => Value;
    "sleep" Sleep => Value;
    "block" Block => Value;
    "fail" Fail => AttemptOrNothing;
    "reject" Reject => ();
    "retry_after" RetryAfter => Value;
    "snooze" Snooze => Value;
    "progress" Progress => Value;
    "log" Log => Value;
    "once" Once => Vec<Value>;
    "exit" Exit => ();
    "stubborn" Stubborn => Value;
    "batch_echo" BatchEcho => u64;
}

#[derive(Serialize, Deserialize)]
#[serde(transparent)]
pub struct Echo(pub Value);

#[derive(Serialize, Deserialize)]
pub struct Sleep {
    pub for_ms: u64,
}

#[derive(Serialize, Deserialize)]
pub struct Block {
    pub for_ms: u64,
    pub how: String,
}

#[derive(Serialize, Deserialize)]
pub struct Fail {
    pub times: u32,
    #[serde(default = "error")]
    pub how: String,
}

/// The number of an attempt, or what JSON cannot hold.
#[derive(Deserialize)]
pub enum AttemptOrNothing {
    Attempt(u32),
    NotJson,
}

impl Serialize for AttemptOrNothing {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Attempt(attempt) => serde_json::json!({"attempt": attempt}).serialize(serializer),
            Self::NotJson => Err(serde::ser::Error::custom("this is not JSON")),
        }
    }
}

#[derive(Serialize, Deserialize)]
pub struct Reject {
    pub how: String,
    #[serde(default = "rejected")]
    pub code: String,
}

#[derive(Serialize, Deserialize)]
pub struct RetryAfter {
    pub delay_ms: u64,
    pub times: u32,
}

#[derive(Serialize, Deserialize)]
pub struct Snooze {
    pub delay_ms: u64,
    pub times: u32,
}

#[derive(Serialize, Deserialize)]
pub struct Progress {
    pub steps: u32,
    pub every_ms: u64,
}

#[derive(Serialize, Deserialize)]
pub struct Log {
    pub lines: u64,
    pub bytes: usize,
    pub every_ms: u64,
}

#[derive(Serialize, Deserialize)]
pub struct Once {
    pub key: String,
    #[serde(default = "one")]
    pub calls: u32,
    #[serde(default = "job")]
    pub scope: String,
    #[serde(default = "again")]
    pub in_doubt: String,
    #[serde(default)]
    pub hold_ms: u64,
    #[serde(default)]
    pub die: bool,
    #[serde(default)]
    pub fail_times: u32,
}

#[derive(Serialize, Deserialize)]
pub struct Exit {
    pub code: i32,
}

#[derive(Serialize, Deserialize)]
pub struct Stubborn {
    pub for_ms: u64,
}

#[derive(Serialize, Deserialize)]
pub struct BatchEcho {
    pub n: u64,
    #[serde(default = "ok")]
    pub how: String,
    #[serde(default = "one")]
    pub times: u32,
}

fn error() -> String {
    "error".into()
}

fn rejected() -> String {
    "rejected".into()
}

fn job() -> String {
    "job".into()
}

fn again() -> String {
    "again".into()
}

fn ok() -> String {
    "ok".into()
}

fn one() -> u32 {
    1
}
