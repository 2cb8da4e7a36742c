//! URLs that name a forbidden address, and commands that the operator does not allow, are refused when the job is
//! submitted: nobody has to wait for a failure that is certain.
//!
//! This spares an attempt, it does not protect: a host name is looked up, and its address judged, when it is called,
//! and a command is judged again when it is run. What is allowed is not known here.

use std::net::SocketAddr;
use std::sync::Arc;

use tickwheel_protocol::problem::FieldCode;
use tickwheel_protocol::{
    FieldError, Labels, Problem, ProcessTarget, SubmitJob, SubmitWorkflow, Target, WorkflowTask,
};
use url::{Host, Url};

/// What the operator lets jobs do.
#[derive(Clone)]
pub struct Permissions {
    /// Whether an address may be called. Asked where a URL names one; where a name leads shows only when it is called.
    pub address_allowed: Arc<dyn Fn(SocketAddr) -> bool + Send + Sync>,
    /// Whether there are commands that may be run.
    pub processes_allowed: bool,
    /// Why a command may not be run, if it may not; with a pointer into the target.
    pub process_refused: Arc<ProcessRefusal>,
}

/// Says why a command may not be run, if it may not.
pub type ProcessRefusal = dyn Fn(&ProcessTarget) -> Option<RefusedProcess> + Send + Sync;

/// Why a command may not be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedProcess {
    /// What of the target is refused, as a JSON pointer into it.
    pub pointer: String,
    /// Why, in words.
    pub detail: String,
}

impl Permissions {
    /// Refuses a validated job with a URL whose host is an address, in whatever spelling, that may not be called, or
    /// with a command that may not be run.
    pub fn check_job(&self, job: &SubmitJob) -> Result<(), Problem> {
        let mut errors = Vec::new();
        let (target, callback_url) = (job.target.as_ref(), job.callback_url.as_deref());
        self.of_job("", target, job.requires.as_ref(), callback_url, &mut errors);
        refuse(errors)
    }

    /// The same for a validated workflow: its jobs, and whom it tells.
    pub fn check_workflow(&self, request: &SubmitWorkflow) -> Result<(), Problem> {
        let mut errors = Vec::new();
        for (list, tasks) in
            [("/before", &request.before), ("/tasks", &request.tasks), ("/after", &request.after)]
        {
            self.of_tasks(list, tasks, &mut errors);
        }
        for (index, notify) in request.notify.iter().enumerate() {
            errors.extend(self.of_url(&format!("/notify/{index}/url"), &notify.url));
        }
        refuse(errors)
    }

    fn of_tasks(&self, list: &str, tasks: &[WorkflowTask], errors: &mut Vec<FieldError>) {
        for (index, task) in tasks.iter().enumerate() {
            if let Some(job) = &task.job {
                let place = format!("{list}/{index}/job");
                let (target, callback_url) = (job.target.as_ref(), job.callback_url.as_deref());
                self.of_job(&place, target, job.requires.as_ref(), callback_url, errors);
            }
            if let Some(inner) = &task.tasks {
                self.of_tasks(&format!("{list}/{index}/tasks"), inner, errors);
            }
        }
    }

    fn of_job(
        &self,
        place: &str,
        target: Option<&Target>,
        requires: Option<&Labels>,
        callback_url: Option<&str>,
        errors: &mut Vec<FieldError>,
    ) {
        // What a worker is to run, the worker's operator allows, when it runs.
        let is_for_workers = requires.is_some_and(|labels| !labels.is_empty());
        match target.filter(|_| !is_for_workers) {
            Some(Target::Http(http)) => {
                errors.extend(self.of_url(&format!("{place}/target/http/url"), &http.url));
            }
            Some(Target::Process(process)) => errors.extend(self.of_process(place, process)),
            _ => {}
        }
        if let Some(url) = callback_url {
            errors.extend(self.of_url(&format!("{place}/callback_url"), url));
        }
    }

    fn of_process(&self, place: &str, process: &ProcessTarget) -> Option<FieldError> {
        let RefusedProcess { pointer, detail } = (self.process_refused)(process)?;
        let pointer = format!("{place}/target/process{pointer}");
        Some(FieldError { pointer, code: FieldCode::NotAllowed, detail })
    }

    fn of_url(&self, pointer: &str, url: &str) -> Option<FieldError> {
        let address = literal_address(url).filter(|address| !(self.address_allowed)(*address))?;
        Some(FieldError {
            pointer: pointer.into(),
            code: FieldCode::ForbiddenAddress,
            detail: format!("leads to {address}, which this server does not call"),
        })
    }
}

fn refuse(errors: Vec<FieldError>) -> Result<(), Problem> {
    if errors.is_empty() { Ok(()) } else { Err(Problem::invalid(errors)) }
}

/// The address in a URL that names one instead of a host.
fn literal_address(url: &str) -> Option<SocketAddr> {
    if names_a_host(url) {
        return None;
    }
    let url = Url::parse(url).ok()?;
    let port = url.port_or_known_default()?;
    match url.host()? {
        Host::Ipv4(ip) => Some((ip, port).into()),
        Host::Ipv6(ip) => Some((ip, port).into()),
        Host::Domain(_) => None,
    }
}

/// Whether the host is certainly a name, seen without taking the URL apart: every spelling of an address is in
/// brackets, hides something behind a percent sign, or has a last label that begins with a digit.
fn names_a_host(url: &str) -> bool {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.split(':').next().unwrap_or_default();
    let last_label = host.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
    !authority.contains(['[', '%', '@']) && last_label.starts_with(|first: char| first.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_recognised_in_every_spelling_and_a_name_is_none() {
        let address = |url: &str| literal_address(url).map(|address| address.to_string());
        for host in [
            "127.0.0.1",
            "127.1",
            "2130706433",
            "0x7f000001",
            "0177.0.0.1",
            "0x7f.1",
            "127.0.0.1.",
            "%31%32%37.0.0.1",
        ] {
            assert_eq!(address(&format!("http://{host}/x")).as_deref(), Some("127.0.0.1:80"), "{host}");
        }
        assert_eq!(address("https://[0:0::1]/").as_deref(), Some("[::1]:443"));
        assert_eq!(address("http://[::ffff:127.0.0.1]:8080/").as_deref(), Some("[::ffff:127.0.0.1]:8080"));
        for name in ["localhost", "example.com", "127.0.0.1.example.com", "example.com.", "a:81"] {
            assert_eq!(address(&format!("http://{name}/")), None, "{name}");
            assert!(names_a_host(&format!("http://{name}/")), "{name}");
        }
    }
}
