//! Routes and offers: which jobs are alike to every worker, and which of them a worker can run.

use std::fmt::Write as _;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::labels::{Labels, all_met};
use crate::id::RouteId;
use crate::job::{Job, JobSpec, Target};
use crate::words::words;

words! {
    /// An executor that the program has built in: the server, and a worker that offers it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum ExecutorKind {
        /// Calls HTTP targets.
        Http = "http",
        /// Runs commands.
        Process = "process",
    }
}

/// What a worker needs to have in order to run a job.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Skill {
    /// A handler for this type.
    Handler(Arc<str>),
    /// This executor. Of which type the job is makes no difference.
    Executor(ExecutorKind),
}

impl JobSpec {
    /// Whether workers run it, and not the server: it has no target that the server could run, or it requires labels,
    /// which only workers have.
    pub fn is_for_workers(&self) -> bool {
        match self.target {
            Target::Worker => true,
            Target::Http(_) | Target::Process(_) => !self.requires.is_empty(),
            Target::Workflow(_) | Target::FanOut => false,
        }
    }
}

/// All that decides which workers can run a job. Jobs with the same route are alike to every worker, so whether they can
/// start is decided for the route and not for each of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Made from the rest: the same on every node and after every restart.
    pub id: RouteId,
    /// The queue in which the jobs wait.
    pub queue: Arc<str>,
    /// What a worker needs to have for them.
    pub skill: Skill,
    /// The labels that a worker needs.
    pub requires: Labels,
}

impl Route {
    /// The route of jobs like this.
    pub fn new(queue: Arc<str>, skill: Skill, requires: Labels) -> Self {
        let mut text = match &skill {
            Skill::Handler(job_type) => format!("{queue}\0{job_type}\0"),
            // No name contains a control character, so no type is written like this.
            Skill::Executor(kind) => format!("{queue}\0\u{1}{kind}\0"),
        };
        for (name, label) in &requires {
            // The kind is part of it: the text "true" and the flag are met by different workers.
            let _ = write!(text, "{name}\0{}{label}\0", kind_of(label));
        }
        let digest = Sha256::digest(text);
        let (half, _) = digest.split_first_chunk().expect("a digest has 32 bytes");
        Self { id: RouteId::from_uuid(Uuid::from_bytes(*half)), queue, skill, requires }
    }

    /// The route of jobs of this type that require nothing but a handler.
    pub fn of_type(queue: impl Into<Arc<str>>, job_type: impl Into<Arc<str>>) -> Self {
        Self::new(queue.into(), Skill::Handler(job_type.into()), Labels::new())
    }

    /// The type of its jobs, if they need a handler.
    pub const fn job_type(&self) -> Option<&Arc<str>> {
        match &self.skill {
            Skill::Handler(job_type) => Some(job_type),
            Skill::Executor(_) => None,
        }
    }

    /// The route of a job, if it is for workers.
    pub fn of(job: &Job) -> Option<Self> {
        if !job.spec.is_for_workers() {
            return None;
        }
        let skill = match job.spec.target {
            Target::Http(_) => Skill::Executor(ExecutorKind::Http),
            Target::Process(_) => Skill::Executor(ExecutorKind::Process),
            Target::Worker | Target::Workflow(_) | Target::FanOut => Skill::Handler(job.job_type.clone()),
        };
        Some(Self::new(job.queue.clone(), skill, job.spec.requires.clone()))
    }
}

const fn kind_of(label: &super::Label) -> char {
    match label {
        super::Label::Flag(_) => '?',
        super::Label::Number(_) => '#',
        super::Label::Text(_) => '"',
    }
}

/// What a worker can run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Offer {
    queues: Vec<Arc<str>>,
    types: Vec<Arc<str>>,
    executors: Vec<ExecutorKind>,
    labels: Labels,
}

impl Offer {
    /// An offer of these. The order of names makes no difference, nor does a name that is there twice.
    pub fn new(mut queues: Vec<Arc<str>>, mut types: Vec<Arc<str>>, labels: Labels) -> Self {
        for names in [&mut queues, &mut types] {
            names.sort_unstable();
            names.dedup();
        }
        Self { queues, types, executors: Vec::new(), labels }
    }

    /// The same with these executors.
    #[must_use]
    pub fn with_executors(mut self, mut executors: Vec<ExecutorKind>) -> Self {
        executors.sort_unstable();
        executors.dedup();
        self.executors = executors;
        self
    }

    /// Whether jobs of this route can be given to the worker.
    pub fn serves(&self, route: &Route) -> bool {
        self.queues.binary_search(&route.queue).is_ok()
            && self.has(&route.skill)
            && all_met(&self.labels, &route.requires)
    }

    fn has(&self, skill: &Skill) -> bool {
        match skill {
            Skill::Handler(job_type) => self.types.binary_search(job_type).is_ok(),
            Skill::Executor(kind) => self.executors.contains(kind),
        }
    }

    /// The same without these types: all their places are taken.
    #[must_use]
    pub fn without_types(&self, full: impl Fn(&str) -> bool) -> Self {
        let types = self.types.iter().filter(|name| !full(name)).cloned().collect();
        Self { types, ..self.clone() }
    }

    /// How many labels the worker has. Work that many can do goes first to the one with the fewest.
    pub fn label_count(&self) -> usize {
        self.labels.len()
    }
}

#[cfg(test)]
mod tests {
    use super::super::labels::{Amount, Label};
    use super::*;

    fn labels(pairs: &[(&str, Label)]) -> Labels {
        pairs.iter().map(|(name, label)| ((*name).to_owned(), label.clone())).collect()
    }

    fn route(queue: &str, job_type: &str, requires: &[(&str, Label)]) -> Route {
        Route::new(queue.into(), Skill::Handler(job_type.into()), labels(requires))
    }

    fn executed(queue: &str, kind: ExecutorKind) -> Route {
        Route::new(queue.into(), Skill::Executor(kind), Labels::new())
    }

    #[test]
    fn a_worker_serves_what_it_offers_all_of() {
        let offer = Offer::new(
            vec!["mail".into(), "default".into()],
            vec!["send".into(), "render".into()],
            labels(&[("gpu", Label::Flag(true))]),
        );
        assert!(offer.serves(&route("mail", "send", &[])));
        assert!(offer.serves(&route("default", "render", &[("gpu", Label::Flag(true))])));
        assert!(!offer.serves(&route("other", "send", &[])));
        assert!(!offer.serves(&route("mail", "resize", &[])));
        assert!(!offer.serves(&route("mail", "send", &[("cpu", Label::Number(Amount(1.0)))])));
        assert!(!offer.without_types(|name| name == "send").serves(&route("mail", "send", &[])));
    }

    fn command(requires: &[(&str, Label)]) -> Job {
        let target = Target::Process(crate::job::ProcessTarget::default());
        let spec = JobSpec { requires: labels(requires), ..JobSpec::new(target) };
        Job::new(crate::id::JobId::from_uuid(Uuid::nil()), "backup", spec, crate::time::Timestamp::EPOCH)
    }

    #[test]
    fn a_command_is_for_a_worker_if_it_requires_something_and_then_for_one_with_that_executor() {
        assert_eq!(Route::of(&command(&[])), None, "the server runs it");
        let dmz = [("site", Label::Text("dmz".into()))];
        let route = Route::of(&command(&dmz)).expect("only a worker has labels");
        assert_eq!(route.skill, Skill::Executor(ExecutorKind::Process));
        let offer = |types: &[&str], executors: &[ExecutorKind], has| {
            let types = types.iter().map(|name| (*name).into()).collect();
            Offer::new(vec!["default".into()], types, has).with_executors(executors.to_vec())
        };
        assert!(offer(&[], &[ExecutorKind::Http, ExecutorKind::Process], labels(&dmz)).serves(&route));
        assert!(!offer(&[], &[ExecutorKind::Process], Labels::new()).serves(&route), "it is elsewhere");
        assert!(!offer(&[], &[ExecutorKind::Http], labels(&dmz)).serves(&route));
        assert!(!offer(&["backup", "process"], &[], labels(&dmz)).serves(&route), "it has only handlers");
        let mut handled = command(&dmz);
        std::sync::Arc::make_mut(&mut handled.spec).target = Target::Worker;
        let handled = Route::of(&handled).expect("it is for workers");
        assert!(!offer(&[], &ExecutorKind::ALL, labels(&dmz)).serves(&handled), "it has no handler");
        assert_ne!(handled.id, route.id);
    }

    #[test]
    fn what_makes_a_difference_to_a_worker_makes_another_route() {
        let base = route("q", "t", &[("a", Label::Text("true".into()))]);
        let others = [
            route("q2", "t", &[("a", Label::Text("true".into()))]),
            route("q", "t2", &[("a", Label::Text("true".into()))]),
            route("q", "t", &[]),
            route("q", "t", &[("a", Label::Flag(true))]),
            route("q", "t", &[("b", Label::Text("true".into()))]),
            executed("q", ExecutorKind::Http),
        ];
        assert_ne!(executed("q", ExecutorKind::Http).id, executed("q", ExecutorKind::Process).id);
        assert_ne!(executed("q", ExecutorKind::Http).id, route("q", "http", &[]).id);
        assert!(others.iter().all(|other| other.id != base.id));
        assert_eq!(base.id, route("q", "t", &[("a", Label::Text("true".into()))]).id);
        // Stored with every job that waits for a worker: it must never change.
        assert_eq!(
            route("default", "send_email", &[]).id.to_string(),
            "b3a60e01-2f2f-6b72-0cb9-e3725b82cfde"
        );
        assert_eq!(
            executed("default", ExecutorKind::Process).id.to_string(),
            "4a18a281-6c9a-99fd-87a3-eae7ff6594a9"
        );
    }
}
