//! How much data a run may make, and how much of it in one step.
//!
//! A few lines can ask for a lot: ten thousand elements, each with all that another task found. So what the jobs of a
//! run are stored with is counted before it is made: payloads, elements of arrays, results put together from others.
//! What payloads only refer to is not. A task that would take its run over the bound fails, and nothing of it is made.
//! What is within the bound is made in steps, so that other runs have their turn in between.
//!
//! Small data is not counted: it is no more than what a job takes by itself.

use super::data::DataFault;
use super::run::RunProgress;
use crate::job::Job;

/// So many bytes a payload may have that is made of results, and a result that is made of others.
pub const DATA_LEN_MAX: usize = 8 << 20;
/// Data of a job up to this many bytes is not counted.
const FREE_BYTES: u64 = 1024;

/// The bounds of what runs make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataLimits {
    /// Bytes that a run may make.
    pub run_bytes_max: u64,
    /// Bytes that tasks may have that are made at once: those that a run begins with, or those of one element.
    pub scope_bytes_max: u64,
    /// After so many bytes the next step goes on.
    pub step_bytes_max: u64,
    /// After so many new jobs the next step goes on.
    pub step_jobs_max: u32,
}

impl Default for DataLimits {
    fn default() -> Self {
        Self {
            run_bytes_max: 256 << 20,
            scope_bytes_max: 32 << 20,
            step_bytes_max: 4 << 20,
            step_jobs_max: 2_000,
        }
    }
}

/// What a step may make, counted before it is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct StepBudget {
    limits: DataLimits,
    /// The number that the next job gets.
    pub next_index: u32,
    /// So many bytes the run has made.
    pub data_bytes: u64,
    step_bytes: u64,
    step_jobs: u32,
}

impl StepBudget {
    /// Nothing yet, of a run that has come so far.
    pub const fn of(limits: DataLimits, progress: &RunProgress) -> Self {
        Self {
            limits,
            next_index: progress.next_index,
            data_bytes: progress.data_bytes,
            step_bytes: 0,
            step_jobs: 0,
        }
    }

    /// The run is to have a job, or a result, with so much data.
    pub fn charge(&mut self, bytes: usize) -> Result<(), DataFault> {
        self.data_bytes += (bytes as u64).saturating_sub(FREE_BYTES);
        if self.data_bytes <= self.limits.run_bytes_max {
            return Ok(());
        }
        let allowed = self.limits.run_bytes_max;
        Err(DataFault::TooLarge(format!(
            "with it the run would have made over {allowed} bytes of data, which are allowed"
        )))
    }

    /// The same for a job that comes together with others, before which the run had made `began_at` bytes.
    pub fn charge_together(&mut self, job: &Job, began_at: u64) -> Result<(), DataFault> {
        self.charge(data_len(job))?;
        if self.data_bytes - began_at <= self.limits.scope_bytes_max {
            return Ok(());
        }
        let allowed = self.limits.scope_bytes_max;
        Err(DataFault::TooLarge(format!(
            "it and the tasks that are made with it would have over {allowed} bytes of data, which are allowed"
        )))
    }

    /// So much was made.
    pub const fn made(&mut self, jobs: u32, bytes: usize) {
        self.step_jobs += jobs;
        self.step_bytes += bytes as u64;
    }

    /// Whether the next step is to go on.
    pub const fn is_full(&self) -> bool {
        self.step_jobs >= self.limits.step_jobs_max || self.step_bytes >= self.limits.step_bytes_max
    }
}

/// How much data a job is stored with.
pub(super) fn data_len(job: &Job) -> usize {
    let iterations = job.spec.position.iter().flat_map(|position| &position.iterations);
    let elements = iterations.filter_map(|iteration| iteration.element.as_ref());
    job.payload.as_str().len() + elements.map(|text| text.as_str().len()).sum::<usize>()
}
