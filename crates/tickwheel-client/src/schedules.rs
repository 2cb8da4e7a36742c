//! Schedules: put one in place, read it, pause it, trigger it, delete it.

use std::time::Duration;

use tickwheel_protocol::{
    Job, List, Missed, Overlap, PauseSchedule, Schedule, SubmitSchedule, TriggerSchedule,
};
use uuid::Uuid;

use crate::client::Client;
use crate::error::Error;
use crate::job_type::span;
use crate::repeat::{Repeat, repeated};
use crate::submit::NewJob;

/// A schedule to put in place.
#[derive(Clone, Debug)]
pub struct NewSchedule {
    job: NewJob,
    request: SubmitSchedule,
}

impl NewSchedule {
    /// Fires by a cron expression.
    pub fn cron(name: impl Into<String>, cron: impl Into<String>, job: NewJob) -> Self {
        let request =
            SubmitSchedule { name: name.into(), cron: Some(cron.into()), ..SubmitSchedule::default() };
        Self { job, request }
    }

    /// Fires at an interval.
    pub fn every(name: impl Into<String>, every: Duration, job: NewJob) -> Self {
        let request =
            SubmitSchedule { name: name.into(), every: Some(span(every)), ..SubmitSchedule::default() };
        Self { job, request }
    }

    /// The time zone of the expression. Default UTC.
    #[must_use]
    pub fn timezone(mut self, zone: impl Into<String>) -> Self {
        self.request.timezone = Some(zone.into());
        self
    }

    /// What happens to a firing while an earlier job has not ended.
    #[must_use]
    pub fn overlap(mut self, overlap: Overlap) -> Self {
        self.request.overlap = Some(overlap);
        self
    }

    /// How the server makes up for missed firings.
    #[must_use]
    pub fn missed(mut self, missed: Missed) -> Self {
        self.request.missed = Some(missed);
        self
    }

    /// Begins paused.
    #[must_use]
    pub fn paused(mut self) -> Self {
        self.request.paused = Some(true);
        self
    }

    /// Changes anything else of the request. The job is filled in later.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut SubmitSchedule)) -> Self {
        change(&mut self.request);
        self
    }
}

/// What a client can do with schedules.
#[derive(Clone, Copy, Debug)]
pub struct Schedules<'a>(pub(crate) &'a Client);

impl Schedules<'_> {
    /// Puts the schedule in place: a new one, or in the place of the one with its name.
    pub async fn put(&self, schedule: NewSchedule) -> Result<Schedule, Error> {
        let job = schedule.job.into_request(self.0)?;
        let request = SubmitSchedule { job, ..schedule.request };
        let path = ["schedules", request.name.as_str()];
        let put = self.0.put(&path).json(&request)?;
        self.0.repeated(Repeat::Always, || put.clone()).await
    }

    /// The schedule of this name.
    pub async fn get(&self, name: &str) -> Result<Schedule, Error> {
        self.0.repeated(Repeat::Always, || self.0.get(&["schedules", name])).await
    }

    /// One page of all schedules. The first page has no cursor.
    pub async fn list(&self, cursor: Option<&str>) -> Result<List<Schedule>, Error> {
        self.0.repeated(Repeat::Always, || self.0.get(&["schedules"]).query("cursor", cursor)).await
    }

    /// Pauses it. The note says why.
    pub async fn pause(&self, name: &str, note: Option<&str>) -> Result<Schedule, Error> {
        let pause = PauseSchedule { note: note.map(ToOwned::to_owned) };
        let call = self.0.post(&["schedules", name, "pause"]).json(&pause)?;
        self.0.repeated(Repeat::Always, || call.clone()).await
    }

    /// Resumes it.
    pub async fn resume(&self, name: &str) -> Result<Schedule, Error> {
        self.0.repeated(Repeat::Always, || self.0.post(&["schedules", name, "resume"])).await
    }

    /// Fires it now. Repeated with the same key, so there is one job.
    pub async fn trigger(&self, name: &str) -> Result<Job, Error> {
        let idempotency_key = Some(Uuid::now_v7().to_string());
        let trigger = TriggerSchedule { idempotency_key, ..TriggerSchedule::default() };
        let call = self.0.post(&["schedules", name, "trigger"]).json(&trigger)?;
        self.0.repeated(Repeat::Always, || call.clone()).await
    }

    /// Deletes it.
    pub async fn delete(&self, name: &str) -> Result<(), Error> {
        let delete = || self.0.delete(&["schedules", name]).send();
        repeated(self.0.options().patience, Repeat::IfNotDone, delete).await.map(drop)
    }
}
