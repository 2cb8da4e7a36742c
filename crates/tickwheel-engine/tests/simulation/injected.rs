//! What went wrong in a world, counted by kind: a fault that is never injected tests nothing.

use std::collections::BTreeMap;
use std::fmt;

use tickwheel_testkit::model::Verb;

/// What is checked when it is committed, and may reach the store late or twice.
const CHECKED: [Verb; 5] =
    [Verb::Claim, Verb::Settle, Verb::AwaitReport, Verb::AdvanceSchedules, Verb::AdvanceRuns];
/// What else the protocol between engine and store is about.
const PROTOCOL_READS: [Verb; 2] = [Verb::LoadDue, Verb::LoadSchedules];
/// What goes wrong less often, but has to be met all the same.
const OTHER_READS: [Verb; 11] = [
    Verb::GetJobs,
    Verb::Controls,
    Verb::FindAbandoned,
    Verb::GetSchedules,
    Verb::ActiveJobs,
    Verb::ReconcileRequests,
    Verb::GetRuns,
    Verb::ReadRun,
    Verb::HeldBy,
    Verb::ListWorkers,
    Verb::Routes,
];
const OTHER_WRITES: [Verb; 8] = [
    Verb::SubmitJobs,
    Verb::ChangeJob,
    Verb::RenewSession,
    Verb::OpenSession,
    Verb::ExpireSessions,
    Verb::ChangeSchedule,
    Verb::OpenWorker,
    Verb::RenewWorker,
];

/// Whether a request of this kind may reach the store late or twice.
pub fn is_checked(verb: Verb) -> bool {
    CHECKED.contains(&verb)
}

/// Whether it is what the protocol is about.
pub fn is_protocol(verb: Verb) -> bool {
    is_checked(verb)
        || PROTOCOL_READS.contains(&verb)
        || matches!(verb, Verb::RenewSession | Verb::OpenWorker)
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
    /// A process stands still at the moment at which something is taken for it.
    FreezeInClaim,
    /// A process dies of the job that it runs.
    KilledByJob,
    /// A worker is gone.
    WorkerCrash,
    /// A worker stands still.
    WorkerFreeze,
    /// A worker leaves with jobs in its hands.
    WorkerLeaves,
    /// A worker dies of the job that it runs.
    WorkerKilledByJob,
    /// What a worker asks for never reaches a node.
    WorkerCallLost,
    /// A node does what a worker asks for, and the worker does not hear of it.
    WorkerAnswerLost,
    /// A worker was given jobs too late to be sure that they are its own, and leaves them.
    WorkerTooLate,
    /// A process does not reach the store.
    CutOff,
    /// The clock of one node is set.
    ClockStep,
    /// A node believes in other partitions than before.
    OwnershipChange,
    /// A message takes a long time.
    Slow,
    /// A client sends the same again.
    SubmissionDoubled,
    /// A node gave back what it had taken: its lease was over, or its clock had been set back.
    NotSent,
    /// A job was given up as poison.
    Poison,
    /// A request never reaches the store.
    RequestLost(Verb),
    /// A request reaches the store when nobody waits for its answer any more.
    RequestLate(Verb),
    /// The store does what it is asked to, and nobody hears of it. Then nobody is told of what is due, either.
    AnswerLost(Verb),
    /// The same request reaches the store a second time, after the first was answered or not.
    RequestDoubled(Verb),
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
            Self::WorkerCrash,
            Self::WorkerFreeze,
            Self::WorkerLeaves,
            Self::WorkerKilledByJob,
            Self::WorkerCallLost,
            Self::WorkerAnswerLost,
            Self::WorkerTooLate,
            Self::CutOff,
            Self::ClockStep,
            Self::OwnershipChange,
            Self::Slow,
            Self::SubmissionDoubled,
            Self::NotSent,
            Self::Poison,
        ];
        let reads = PROTOCOL_READS.into_iter().chain(OTHER_READS);
        let writes = CHECKED.into_iter().chain(OTHER_WRITES);
        let lost = reads.chain(writes.clone()).map(Self::RequestLost);
        let unheard = writes.map(Self::AnswerLost);
        let late = CHECKED.into_iter().map(Self::RequestLate);
        let doubled = CHECKED.into_iter().map(Self::RequestDoubled);
        plain.into_iter().chain(lost).chain(unheard).chain(late).chain(doubled)
    }

    /// The request that it meets.
    pub const fn verb(self) -> Option<Verb> {
        match self {
            Self::RequestLost(verb)
            | Self::RequestLate(verb)
            | Self::AnswerLost(verb)
            | Self::RequestDoubled(verb) => Some(verb),
            _ => None,
        }
    }
}

/// How often each kind of fault was injected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
        self.0.iter().try_for_each(|(fault, count)| writeln!(f, "{count:>9} {fault:?}"))
    }
}
