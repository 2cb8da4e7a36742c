//! URLs that name a forbidden address are refused when the job is submitted: nobody has to wait for a failure that is
//! certain.
//!
//! This spares an attempt, it does not protect: a host name is looked up, and its address judged, when it is called.
//! Which addresses are forbidden is not known here.

use std::net::SocketAddr;

use tickwheel_protocol::problem::FieldCode;
use tickwheel_protocol::{FieldError, Problem, SubmitJob, SubmitWorkflow, Target, WorkflowTask};
use url::{Host, Url};

/// Whether an address may be called.
pub type Allowed<'a> = &'a dyn Fn(SocketAddr) -> bool;

/// Refuses a validated job with a URL whose host is an address, in whatever spelling, that is not `allowed`.
pub fn check_addresses(job: &SubmitJob, allowed: Allowed<'_>) -> Result<(), Problem> {
    refuse(of_job("", job.target.as_ref(), job.callback_url.as_deref(), allowed))
}

/// The same for a validated workflow: its jobs, and whom it tells.
pub fn check_workflow_addresses(request: &SubmitWorkflow, allowed: Allowed<'_>) -> Result<(), Problem> {
    let mut errors = Vec::new();
    for (list, tasks) in
        [("/before", &request.before), ("/tasks", &request.tasks), ("/after", &request.after)]
    {
        of_tasks(list, tasks, allowed, &mut errors);
    }
    let told = request.notify.iter().enumerate();
    errors.extend(
        told.filter_map(|(index, notify)| of_url(&format!("/notify/{index}/url"), &notify.url, allowed)),
    );
    refuse(errors)
}

fn refuse(errors: Vec<FieldError>) -> Result<(), Problem> {
    if errors.is_empty() { Ok(()) } else { Err(Problem::invalid(errors)) }
}

fn of_tasks(list: &str, tasks: &[WorkflowTask], allowed: Allowed<'_>, errors: &mut Vec<FieldError>) {
    for (index, task) in tasks.iter().enumerate() {
        if let Some(job) = &task.job {
            let place = format!("{list}/{index}/job");
            errors.extend(of_job(&place, job.target.as_ref(), job.callback_url.as_deref(), allowed));
        }
        if let Some(inner) = &task.tasks {
            of_tasks(&format!("{list}/{index}/tasks"), inner, allowed, errors);
        }
    }
}

fn of_job(
    place: &str,
    target: Option<&Target>,
    callback_url: Option<&str>,
    allowed: Allowed<'_>,
) -> Vec<FieldError> {
    let target = match target {
        Some(Target::Http(http)) => Some(http.url.as_str()),
        _ => None,
    };
    let urls = [("/target/http/url", target), ("/callback_url", callback_url)];
    let named = |(pointer, url): (&str, Option<&str>)| of_url(&format!("{place}{pointer}"), url?, allowed);
    urls.into_iter().filter_map(named).collect()
}

fn of_url(pointer: &str, url: &str, allowed: Allowed<'_>) -> Option<FieldError> {
    let address = literal_address(url).filter(|address| !allowed(*address))?;
    Some(FieldError {
        pointer: pointer.into(),
        code: FieldCode::ForbiddenAddress,
        detail: format!("leads to {address}, which this server does not call"),
    })
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
