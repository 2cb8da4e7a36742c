//! What went wrong in a world, counted by kind: a fault that is never injected tests nothing.

use std::collections::BTreeMap;
use std::fmt;

/// What the store is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequestKind {
    /// Waiting jobs are read.
    Load,
    /// Jobs are taken.
    Claim,
    /// The end of an attempt is written.
    Settle,
    /// An attempt waits for a report.
    AwaitReport,
    /// A lease is renewed.
    Renew,
    /// Schedules are read.
    LoadSchedules,
    /// A step of a schedule is written.
    AdvanceSchedule,
    /// A step of a run is written.
    AdvanceRun,
}

impl RequestKind {
    const READS: [Self; 2] = [Self::Load, Self::LoadSchedules];
    const WRITES: [Self; 6] =
        [Self::Claim, Self::Settle, Self::AwaitReport, Self::Renew, Self::AdvanceSchedule, Self::AdvanceRun];
    const DOUBLED: [Self; 5] =
        [Self::Claim, Self::Settle, Self::AwaitReport, Self::AdvanceSchedule, Self::AdvanceRun];
}

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultKind {
    /// A process is gone.
    Crash,
    /// And the store knows it before the lease is over.
    CrashNoticed,
    /// A process stands still.
    Freeze,
    /// A process stands still while it waits for what it has taken.
    FreezeInClaim,
    /// A process dies of the job that it runs.
    KilledByJob,
    /// The clock of one node is set.
    ClockStep,
    /// A node believes in other partitions than before.
    OwnershipChange,
    /// A message takes a long time.
    Slow,
    /// Nobody is told of a job that is due.
    HintLost,
    /// Somebody is told of it once more.
    HintDoubled,
    /// A client sends the same again.
    SubmissionDoubled,
    /// A node gave back what it had taken: its lease was over, or its clock had been set back.
    NotSent,
    /// A job was given up as poison.
    Poison,
    /// A request never reaches the store.
    RequestLost(RequestKind),
    /// The store does what it is asked to, and nobody hears of it.
    AnswerLost(RequestKind),
    /// The same request reaches the store a second time, after the first was answered or not.
    RequestDoubled(RequestKind),
}

impl FaultKind {
    /// Every kind that has to be met.
    pub fn all() -> impl Iterator<Item = Self> {
        let plain = [
            Self::Crash,
            Self::CrashNoticed,
            Self::Freeze,
            Self::FreezeInClaim,
            Self::KilledByJob,
            Self::ClockStep,
            Self::OwnershipChange,
            Self::Slow,
            Self::HintLost,
            Self::HintDoubled,
            Self::SubmissionDoubled,
            Self::NotSent,
            Self::Poison,
        ];
        let lost = RequestKind::READS.into_iter().chain(RequestKind::WRITES).map(Self::RequestLost);
        let unheard = RequestKind::WRITES.into_iter().map(Self::AnswerLost);
        let doubled = RequestKind::DOUBLED.into_iter().map(Self::RequestDoubled);
        plain.into_iter().chain(lost).chain(unheard).chain(doubled)
    }
}

/// How often each kind of fault was injected.
#[derive(Clone, Debug, Default)]
pub struct Injected(BTreeMap<FaultKind, usize>);

impl Injected {
    /// One more.
    pub fn count(&mut self, fault: FaultKind) {
        *self.0.entry(fault).or_default() += 1;
    }

    /// All of another world.
    pub fn add(&mut self, other: &Self) {
        for (fault, count) in &other.0 {
            *self.0.entry(*fault).or_default() += count;
        }
    }

    /// So often.
    pub fn of(&self, fault: FaultKind) -> usize {
        self.0.get(&fault).copied().unwrap_or(0)
    }
}

impl fmt::Display for Injected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        FaultKind::all().try_for_each(|fault| writeln!(f, "{:>9} {fault:?}", self.of(fault)))
    }
}
