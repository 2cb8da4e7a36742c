//! Routes and offers: which jobs are alike to every worker, and which of them a worker can run.

use std::fmt::Write as _;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::labels::{Labels, all_met};
use crate::id::RouteId;
use crate::job::{Job, Target};

/// All that decides which workers can run a job. Jobs with the same route are alike to every worker, so whether they can
/// start is decided for the route and not for each of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Made from the rest: the same on every node and after every restart.
    pub id: RouteId,
    /// The queue in which the jobs wait.
    pub queue: Arc<str>,
    /// Their type: the name of the handler.
    pub job_type: Arc<str>,
    /// The labels that a worker needs.
    pub requires: Labels,
}

impl Route {
    /// The route of jobs like this.
    pub fn new(queue: Arc<str>, job_type: Arc<str>, requires: Labels) -> Self {
        let mut text = format!("{queue}\0{job_type}\0");
        for (name, label) in &requires {
            // The kind is part of it: the text "true" and the flag are met by different workers.
            let _ = write!(text, "{name}\0{}{label}\0", kind_of(label));
        }
        let digest = Sha256::digest(text);
        let (half, _) = digest.split_first_chunk().expect("a digest has 32 bytes");
        Self { id: RouteId::from_uuid(Uuid::from_bytes(*half)), queue, job_type, requires }
    }

    /// The route of a job, if it is for workers.
    pub fn of(job: &Job) -> Option<Self> {
        let is_for_workers = matches!(job.spec.target, Target::Worker);
        is_for_workers.then(|| Self::new(job.queue.clone(), job.job_type.clone(), job.spec.requires.clone()))
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
    labels: Labels,
}

impl Offer {
    /// An offer of these. The order of names makes no difference, nor does a name that is there twice.
    pub fn new(mut queues: Vec<Arc<str>>, mut types: Vec<Arc<str>>, labels: Labels) -> Self {
        for names in [&mut queues, &mut types] {
            names.sort_unstable();
            names.dedup();
        }
        Self { queues, types, labels }
    }

    /// Whether jobs of this route can be given to the worker.
    pub fn serves(&self, route: &Route) -> bool {
        self.queues.binary_search(&route.queue).is_ok()
            && self.types.binary_search(&route.job_type).is_ok()
            && all_met(&self.labels, &route.requires)
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
        Route::new(queue.into(), job_type.into(), labels(requires))
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

    #[test]
    fn what_makes_a_difference_to_a_worker_makes_another_route() {
        let base = route("q", "t", &[("a", Label::Text("true".into()))]);
        let others = [
            route("q2", "t", &[("a", Label::Text("true".into()))]),
            route("q", "t2", &[("a", Label::Text("true".into()))]),
            route("q", "t", &[]),
            route("q", "t", &[("a", Label::Flag(true))]),
            route("q", "t", &[("b", Label::Text("true".into()))]),
        ];
        assert!(others.iter().all(|other| other.id != base.id));
        assert_eq!(base.id, route("q", "t", &[("a", Label::Text("true".into()))]).id);
        // Stored with every job that waits for a worker: it must never change.
        assert_eq!(
            route("default", "send_email", &[]).id.to_string(),
            "b3a60e01-2f2f-6b72-0cb9-e3725b82cfde"
        );
    }
}
