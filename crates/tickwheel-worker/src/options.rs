//! The options of a worker: arguments first, then the environment, then defaults. All mistakes are reported together.

use std::collections::BTreeMap;
use std::time::Duration;

use tickwheel_client::{Client, Environment};
use tickwheel_protocol::worker::Label;
use tickwheel_protocol::{Labels, Span};

use crate::error::Error;

const CAPACITY_DEFAULT: u32 = 10;
const CAPACITY_MAX: u32 = 100_000;
const DRAIN_TIMEOUT_DEFAULT: Duration = Duration::from_secs(25);
const LEASE_MIN: Duration = Duration::from_secs(5);
const LEASE_MAX: Duration = Duration::from_secs(600);
const NAME_CHARS_MAX: usize = 255;

/// What was said in the program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given {
    pub name: Option<String>,
    pub queues: Vec<String>,
    pub labels: Labels,
    pub capacity: Option<u32>,
    pub lease: Option<Duration>,
    pub drain_timeout: Option<Duration>,
    pub health_port: Option<u16>,
}

/// What a worker runs with.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub name: String,
    pub queues: Vec<String>,
    pub labels: Labels,
    pub capacity: u32,
    pub lease: Option<Duration>,
    pub drain_timeout: Duration,
    pub health_port: Option<u16>,
}

/// The client and the options, or everything that is wrong with them.
pub(crate) fn complete(
    client: Result<Client, tickwheel_client::Error>,
    given: Given,
    mistakes: Vec<String>,
) -> Result<(Client, Options), Error> {
    let mut environment = Environment::default();
    let client = environment.keep(client);
    for mistake in mistakes {
        environment.mistake(mistake);
    }
    let options = Options {
        name: given.name.or_else(|| environment.text("WORKER_NAME")).unwrap_or_else(host),
        queues: queues(given.queues, &mut environment),
        labels: labels(given.labels, &mut environment),
        capacity: capacity(given.capacity, &mut environment),
        lease: duration(given.lease, "LEASE", &mut environment),
        drain_timeout: duration(given.drain_timeout, "DRAIN_TIMEOUT", &mut environment)
            .unwrap_or(DRAIN_TIMEOUT_DEFAULT),
        health_port: given.health_port.or_else(|| environment.value("HEALTH_PORT", "a port, 1 to 65535")),
    };
    if options.lease.is_some_and(|lease| !(LEASE_MIN..=LEASE_MAX).contains(&lease)) {
        environment.mistake("lease (TICKWHEEL_LEASE): expected 5s to 10m");
    }
    if options.name.is_empty() || options.name.chars().count() > NAME_CHARS_MAX {
        environment.mistake("name (TICKWHEEL_WORKER_NAME): expected 1 to 255 characters");
    }
    match (environment.check(), client) {
        (Ok(()), Some(client)) => Ok((client, options)),
        (Err(tickwheel_client::Error::BadSettings(mistakes)), _) => Err(Error::BadOptions(mistakes)),
        (Err(other), _) => Err(Error::BadOptions(vec![other.to_string()])),
        (Ok(()), None) => Err(Error::BadOptions(vec!["there is no client".into()])),
    }
}

fn queues(given: Vec<String>, environment: &mut Environment) -> Vec<String> {
    if !given.is_empty() {
        return given;
    }
    match environment.list("QUEUES") {
        Some(queues) if queues.is_empty() => {
            environment.mistake("TICKWHEEL_QUEUES: expected names with commas");
            queues
        }
        Some(queues) => queues,
        None => vec!["default".into()],
    }
}

fn capacity(given: Option<u32>, environment: &mut Environment) -> u32 {
    let expected = "a whole number from 1 to 100000";
    let capacity = given.or_else(|| environment.value("CAPACITY", expected)).unwrap_or(CAPACITY_DEFAULT);
    if !(1..=CAPACITY_MAX).contains(&capacity) {
        environment.mistake(format!("capacity (TICKWHEEL_CAPACITY): expected {expected}, not {capacity}"));
    }
    capacity
}

fn duration(given: Option<Duration>, name: &str, environment: &mut Environment) -> Option<Duration> {
    given.or_else(|| environment.value::<Span>(name, "a duration such as 30s").map(Span::as_duration))
}

/// `gpu=true,memory_gib=16,zone=eu-1`
fn labels(given: Labels, environment: &mut Environment) -> Labels {
    if !given.is_empty() {
        return given;
    }
    let mut labels = BTreeMap::new();
    for item in environment.list("LABELS").unwrap_or_default() {
        match item.split_once('=') {
            Some((name, value)) if !name.trim().is_empty() => {
                labels.insert(name.trim().to_owned(), Label::read(value.trim()));
            }
            _ => environment.mistake(format!("TICKWHEEL_LABELS: expected name=value, not {item:?}")),
        }
    }
    labels
}

/// The name of the machine.
pub(crate) fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = name.or_else(|| std::env::var("HOSTNAME").ok()).map(|name| name.trim().to_owned());
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| "worker".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mistake_is_reported_at_once() {
        let client = Client::new("nowhere at all");
        let given = Given {
            capacity: Some(0),
            lease: Some(Duration::from_secs(1)),
            name: Some(String::new()),
            ..Given::default()
        };
        let Err(Error::BadOptions(mistakes)) = complete(client, given, vec!["no handler".into()]) else {
            panic!("they are bad")
        };
        assert_eq!(mistakes.len(), 5, "{mistakes:?}");
    }

    #[test]
    fn a_label_is_a_flag_a_number_or_a_text() {
        assert_eq!(Label::read("true"), Label::Flag(true));
        assert_eq!(Label::read("16"), Label::Number(16.0));
        assert_eq!(Label::read("eu-1"), Label::Text("eu-1".into()));
    }
}
