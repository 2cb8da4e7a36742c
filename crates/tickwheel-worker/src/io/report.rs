//! Reports the ends of attempts: one request under way, the next batch gathers meanwhile. Repeated with the same tokens
//! until each is accepted or stale, also under a new session. None is ever dropped.

use std::time::{Duration, Instant};

use tickwheel_client::{Backoff, Error};
use tickwheel_protocol::{Code, Problem, ReportAttempts, ReportResult, ReportResults};

use super::{ANSWER_TIMEOUT, Io, REFUSED_DELAY};
use crate::session::{Registration, Report};

/// Bytes of a request, below the server's own bound.
const BATCH_BYTES_MAX: usize = 8 << 20;

impl Io {
    /// Reports for ever.
    pub async fn report_loop(&self) {
        let mut backoff = Backoff::default();
        // After a request that the server could not take as a whole, each report is tried by itself.
        let mut one_by_one: usize = 0;
        loop {
            let registration = self.registered().await;
            let limit = usize::try_from(registration.limits.reports).unwrap_or(usize::MAX).max(1);
            let count_max = if one_by_one > 0 { 1 } else { limit };
            let reports = self.session.next_reports(count_max, BATCH_BYTES_MAX);
            if reports.is_empty() {
                self.session.wake_report.notified().await;
                continue;
            }
            one_by_one = one_by_one.saturating_sub(reports.len());
            match self.report(&registration, &reports).await {
                Ok(results) => {
                    backoff = Backoff::default();
                    self.away.is_back();
                    let left = self.settle(reports, results);
                    if !left.is_empty() {
                        self.session.put_reports_back(left);
                        tokio::time::sleep(backoff.next(None)).await;
                    }
                }
                Err(error) if error.code() == Some(Code::UnknownWorker) => {
                    self.session.put_reports_back(reports);
                    self.session_is_gone(&registration);
                }
                Err(error) if error.is_transient() || matches!(error.status(), None | Some(500)) => {
                    self.away.note(&error);
                    self.session.put_reports_back(reports);
                    tokio::time::sleep(backoff.next(error.retry_after())).await;
                }
                Err(error) if matches!(error.status(), Some(401 | 403)) => {
                    tracing::error!(%error, "refused by the server");
                    self.session.put_reports_back(reports);
                    tokio::time::sleep(REFUSED_DELAY).await;
                }
                Err(error) if reports.len() > 1 => {
                    tracing::warn!(%error, reports = reports.len(), "the server does not take these reports together");
                    one_by_one = reports.len();
                    self.session.put_reports_back(reports);
                }
                Err(error) => self.give_up(&reports, &error),
            }
        }
    }

    async fn report(&self, registration: &Registration, reports: &[Report]) -> Result<ReportResults, Error> {
        let now = Instant::now();
        let on_the_wire = |report: &Report| {
            let mut wire = report.report.clone();
            wire.logs = Some(report.lines.clone())
                .filter(|lines| !lines.is_empty())
                .map(|lines| lines.on_the_wire(now));
            wire
        };
        let request = ReportAttempts { reports: reports.iter().map(on_the_wire).collect() };
        let call = self.client.post(&["workers", &registration.worker_id, "report"]).json(&request)?;
        let bytes: usize = reports.iter().map(|report| report.bytes).sum();
        // A large batch takes its time on a slow line.
        let timeout = ANSWER_TIMEOUT + Duration::from_secs((bytes >> 20) as u64);
        call.within(timeout).send().await?.read()
    }

    /// Takes notice of the answers. Returns the reports that have to be sent again.
    fn settle(&self, reports: Vec<Report>, results: ReportResults) -> Vec<Report> {
        let mut results = results.results.into_iter();
        let mut left = Vec::new();
        for report in reports {
            match results.next() {
                Some(ReportResult::Accepted(_)) => self.session.reported(&report),
                Some(ReportResult::Rejected(rejected)) if rejected.error.status < 500 => {
                    say(&report, &rejected.error);
                    self.session.reported(&report);
                }
                Some(ReportResult::Rejected(_)) | None => left.push(report),
            }
        }
        left
    }

    /// The server will never take it. The attempt ends at its deadline, or when the server counts again.
    fn give_up(&self, reports: &[Report], error: &Error) {
        for report in reports {
            let (job_id, attempt) = (report.attempt.job.id, report.attempt.number);
            tracing::error!(%job_id, attempt, %error, "refused by the server: a report");
            self.session.reported(report);
        }
    }
}

fn say(report: &Report, problem: &Problem) {
    let (job_id, attempt) = (report.attempt.job.id, report.attempt.number);
    let (job_type, outcome) = (report.attempt.job_type(), report.report.outcome);
    if problem.code == Code::StaleToken.as_str() {
        tracing::warn!(%job_id, "type" = job_type, attempt, %outcome, "stale report: the attempt is somebody else's now");
    } else {
        let (code, detail) = (&problem.code, &problem.detail);
        tracing::error!(%job_id, "type" = job_type, attempt, %outcome, code, detail, "refused by the server: a report");
    }
}
