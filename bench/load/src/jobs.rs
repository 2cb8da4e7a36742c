//! The jobs of the load: a payload of a hundred bytes that says which job it is.

use std::net::SocketAddr;

use jiff::Timestamp;

/// As many digits for every job.
const FIRST_NUMBER: usize = 10_000_000;
const NUMBER_NAME: &[u8] = br#""n":"#;

/// When a job is due.
pub enum Due {
    /// As soon as it is submitted.
    Now,
    /// So late that nothing of it happens while something is measured.
    InAnHour,
    /// At this time.
    At(Timestamp),
}

/// Who runs a job.
#[derive(Clone, Copy)]
pub enum Runner {
    /// The endpoint at this address, called by the server.
    Endpoint(SocketAddr),
    /// A worker that serves jobs of this type.
    Worker(&'static str),
}

/// Job number `number` as JSON.
pub fn job(number: usize, due: Due, runner: Runner) -> String {
    let n = FIRST_NUMBER + number;
    let (name, target) = match runner {
        Runner::Endpoint(address) => {
            ("bench", format!(r#","target":{{"http":{{"url":"http://{address}/"}}}}"#))
        }
        // Those that are held must not come to their deadline meanwhile.
        Runner::Worker(name) => (name, r#","timeout":"1h""#.to_owned()),
    };
    let due = match due {
        Due::Now => String::new(),
        Due::InAnHour => r#""delay":"1h","#.to_owned(),
        Due::At(time) => format!(r#""execute_at":"{time}","#),
    };
    format!(
        r#"{{"type":"{name}",{due}"payload":{{"to":"somebody@example.org","template":"welcome","language":"en","number":1234567890,"n":{n}}}{target}}}"#
    )
}

/// Which job a payload belongs to.
pub fn number_in(payload: &[u8]) -> Option<usize> {
    let place = payload.windows(NUMBER_NAME.len()).position(|window| window == NUMBER_NAME)?;
    let digits = payload[place + NUMBER_NAME.len()..].split(|byte| !byte.is_ascii_digit()).next()?;
    std::str::from_utf8(digits).ok()?.parse::<usize>().ok()?.checked_sub(FIRST_NUMBER)
}
