//! Faults on demand: which verb of the store goes wrong next, and how.
//!
//! A fault is meant for one verb, so a test knows which of the engine's writes it meets, and can ask whether it was
//! met.

use std::collections::{BTreeMap, VecDeque};

use super::Model;

/// How a call goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It fails before anything is done, and the caller is told so.
    Aborted,
    /// It fails after the commit: it is done, but the caller does not hear of it.
    LostReply,
    /// The answer is lost while the call is still on its way. It takes effect when the test releases it.
    Late,
    /// Nothing fails, but the call stands still on its way until the test releases it.
    Stalled,
    /// Nothing fails, but the answer stands still on its way back.
    SlowReply,
}

impl Fault {
    /// Those that the caller sees as an error.
    pub const ERRORS: [Self; 3] = [Self::Aborted, Self::LostReply, Self::Late];
}

/// Declares the verbs, and the list of all.
macro_rules! verbs {
    ($($verb:ident,)+) => {
        /// A method of the store's ports.
        #[allow(missing_docs, reason = "they are named like the methods")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Verb { $($verb),+ }

        impl Verb {
            /// Every one of them.
            pub const ALL: &'static [Self] = &[$(Self::$verb),+];
        }
    };
}

verbs! {
    ActiveJobs,
    AdvanceRuns,
    AdvanceSchedules,
    AppendLogs,
    AskOnce,
    Attempts,
    AwaitReport,
    CallbacksOf,
    ChangeJob,
    ChangeSchedule,
    Claim,
    Controls,
    CountDeadLetters,
    CountDeadLettersLike,
    CountDue,
    CountDueRoutes,
    CountHeld,
    CreateSchedule,
    DeleteCalendar,
    DeleteSchedule,
    DiscardDeadLetter,
    DueReceivers,
    EndSession,
    EndWorker,
    EndedAmong,
    ExpireOnce,
    ExpireSessions,
    ExtendWorkers,
    FindAbandoned,
    FindSchedule,
    FiresWithin,
    ForgetProgress,
    GetDeadLetter,
    GetJob,
    GetJobs,
    GetProgress,
    GetRuns,
    GetSchedules,
    GetWorker,
    GetWorkflow,
    ReturnCallbacks,
    Halted,
    HeldBy,
    ClaimedBy,
    InstallationSecret,
    LatestFires,
    LatestVersion,
    ListCalendars,
    ListDeadLetters,
    ListFires,
    ListJobs,
    ListQueues,
    ListRuns,
    ListSchedules,
    ListWorkers,
    ListWorkflowVersions,
    ListWorkflows,
    LoadDue,
    LoadSchedules,
    ReconcileRequests,
    OpenSession,
    OpenWorker,
    Ping,
    PutCalendar,
    PutProgress,
    PutWorkflow,
    QueuedFirings,
    ReadLogs,
    ReadResults,
    ReadRun,
    RemoveUnusedRoutes,
    RemoveWorkflow,
    RenewSession,
    RenewWorker,
    ReportOnce,
    Routes,
    SetHalted,
    SetQueuePaused,
    SetWorkerDraining,
    Settle,
    SettleCallback,
    StallingRuns,
    StartRun,
    SubmitJobs,
    TakeCallbacks,
    TriggerSchedule,
    WriteCallback,
}

/// A write that was sent and has not arrived yet.
pub(super) type LateWrite = Box<dyn FnOnce(&mut Model) + Send>;

/// What is to go wrong, and what is on its way.
#[derive(Default)]
pub(super) struct Faults {
    by_verb: BTreeMap<Verb, VecDeque<Fault>>,
    of_any_write: VecDeque<Fault>,
    pub late: Vec<LateWrite>,
    pub stalled: Vec<Verb>,
}

impl Faults {
    pub fn inject(&mut self, verb: Verb, fault: Fault) {
        self.by_verb.entry(verb).or_default().push_back(fault);
    }

    pub fn inject_for_any_write(&mut self, fault: Fault) {
        self.of_any_write.push_back(fault);
    }

    pub fn forgive(&mut self, verb: Verb) {
        self.by_verb.remove(&verb);
    }

    /// The fault that the call of a read meets.
    pub fn of_read(&mut self, verb: Verb) -> Option<Fault> {
        self.by_verb.get_mut(&verb)?.pop_front()
    }

    /// The fault that the call of a write meets.
    pub fn of_write(&mut self, verb: Verb) -> Option<Fault> {
        self.of_read(verb).or_else(|| self.of_any_write.pop_front())
    }

    /// How many are still to be met.
    pub fn left(&self, verb: Verb) -> usize {
        self.by_verb.get(&verb).map_or(0, VecDeque::len)
    }
}

impl std::fmt::Debug for Faults {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Faults({:?}, {} late, {:?} stalled)", self.by_verb, self.late.len(), self.stalled)
    }
}
