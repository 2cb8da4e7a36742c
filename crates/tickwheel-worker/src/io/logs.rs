//! Sends lines of logs while attempts run: every half second. The rest goes with the report.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tickwheel_client::Error;
use tickwheel_protocol::worker::{AppendLogs, AttemptLines};
use tickwheel_protocol::{Code, Problem, ReportResult, ReportResults};

use super::Io;
use crate::attempt::Attempt;
use crate::session::Registration;

const INTERVAL: Duration = Duration::from_millis(500);
/// How long a request may take. It is sent again if need be: lines have numbers.
const TIMEOUT: Duration = Duration::from_secs(3);
/// Bytes of a request.
const REQUEST_BYTES_MAX: usize = 512 << 10;
/// Attempts in a request.
const REQUEST_ATTEMPTS_MAX: usize = 1000;

impl Io {
    /// Sends lines for ever, if the server wants them before the report.
    pub async fn logs_loop(&self) {
        loop {
            self.session.wake_logs.notified().await;
            tokio::select! {
                () = tokio::time::sleep(INTERVAL) => {}
                () = self.session.hurry_logs.notified() => {}
            }
            let registration = self.registered().await;
            let logged = self.session.take_logged();
            if !registration.has_logs {
                continue;
            }
            let mut waiting = logged;
            while !waiting.is_empty() {
                waiting = self.send_some(&registration, waiting).await;
            }
        }
    }

    /// Sends what fits into one request. Returns the attempts that have more.
    async fn send_some(&self, registration: &Registration, attempts: Vec<Arc<Attempt>>) -> Vec<Arc<Attempt>> {
        let now = Instant::now();
        let mut bytes_left = REQUEST_BYTES_MAX;
        let mut sent = Vec::new();
        let mut later = Vec::new();
        for attempt in attempts {
            if bytes_left == 0 || sent.len() == REQUEST_ATTEMPTS_MAX {
                later.push(attempt);
                continue;
            }
            let lines = attempt.said().log.unsent(bytes_left, &self.session.budget);
            if lines.is_empty() || attempt.is_abandoned() {
                continue;
            }
            bytes_left = bytes_left.saturating_sub(lines.bytes());
            sent.push((attempt, lines.end(), lines));
        }
        if sent.is_empty() {
            return later;
        }
        let of_attempt = |(attempt, _, lines): &(Arc<Attempt>, u64, crate::log_buffer::Lines)| {
            let wire = lines.clone().on_the_wire(now);
            AttemptLines { token: attempt.token.clone(), first: wire.first, lines: wire.lines }
        };
        let request = AppendLogs { logs: sent.iter().map(of_attempt).collect() };
        let results = self.post_logs(registration, &request).await;
        match results {
            Ok(results) => {
                for ((attempt, end, _), result) in sent.into_iter().zip(results.results) {
                    let problem = match &result {
                        ReportResult::Accepted(_) => None,
                        ReportResult::Rejected(rejected) => Some(&rejected.error),
                    };
                    self.settle_lines(attempt, end, problem, &mut later);
                }
            }
            Err(error) => {
                if error.code() == Some(Code::UnknownWorker) {
                    self.session_is_gone(registration);
                } else {
                    tracing::debug!(%error, "log lines were not sent");
                }
                // They stay where they are; the next round, or the report, sends them.
                sent.iter().for_each(|(attempt, ..)| self.session.logged(attempt, false));
                later.iter().for_each(|attempt| self.session.logged(attempt, false));
                later.clear();
            }
        }
        later
    }

    async fn post_logs(
        &self,
        registration: &Registration,
        request: &AppendLogs,
    ) -> Result<ReportResults, Error> {
        let call = self.client.post(&["workers", &registration.worker_id, "logs"]).json(request)?;
        call.within(TIMEOUT).send().await?.read()
    }

    fn settle_lines(
        &self,
        attempt: Arc<Attempt>,
        end: u64,
        problem: Option<&Problem>,
        later: &mut Vec<Arc<Attempt>>,
    ) {
        if let Some(problem) = problem {
            tracing::debug!(job_id = %attempt.job.id, code = problem.code, "the server does not take these log lines");
        }
        let mut said = attempt.said();
        // What the server will take a little later stays; anything else it would never take.
        if problem.is_none_or(|problem| problem.status < 500) {
            said.log.acknowledge(end, &self.session.budget);
        }
        let (has_more, is_large) = (!said.log.is_empty(), said.log.is_large());
        drop(said);
        if is_large && problem.is_none() {
            later.push(attempt);
        } else if has_more {
            self.session.logged(&attempt, false);
        }
    }
}
