//! Keeps web pages out.
//!
//! A browser on this machine, or in this network, sends whatever any web page asks it to. Three things give such a
//! request away, and each is a reason to refuse it:
//!
//! - **Host.** A page can point a name of its own at this server's address (DNS rebinding) and is then of the same
//!   origin as the server, as far as the browser can see. The name is still the page's: only hosts that are ours are
//!   answered.
//! - **Origin, Sec-Fetch-Site.** The browser says that another site asks. Only following a link is let through: it
//!   changes nothing, and the page that has the link does not see the answer.
//! - **A POST without a content type of ours.** A form or a script sends it to any site without asking first. A browser
//!   does ask first (and this server never agrees) about `application/json`, about the header `Tickwheel-Client`, and
//!   about PUT, PATCH and DELETE.
//!
//! Who reports on an attempt holds a token that no page can guess, and needs no other proof. Health is told to whoever
//! asks: load balancers make up their own `Host`, and there is nothing to learn from it. Metrics are not health: they
//! name queues.

use std::net::{IpAddr, SocketAddr};

use axum::extract::Request;
use hyper::header::{CONTENT_TYPE, HOST, HeaderName, ORIGIN};
use hyper::{HeaderMap, Method};
use tickwheel_protocol::Code;

use crate::error::{ApiError, ApiResult};

/// Shows that a request was not made by a web page, whatever its value. For requests without a body.
pub const CLIENT: HeaderName = HeaderName::from_static("tickwheel-client");

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// The hosts under which this server is asked.
///
/// On a loopback address these are `localhost` and the loopback addresses, on any other one all addresses: an address
/// cannot be rebound. Names come from the configuration. Ports are not compared: tunnels and containers change them,
/// and a page on another port gives itself away by its origin.
#[derive(Clone, Debug)]
pub struct AllowedHosts {
    loopback_only: bool,
    any: bool,
    names: Vec<String>,
}

impl AllowedHosts {
    /// Those of a server that listens on `listen` and is known by `names`; `*` stands for every name.
    pub fn new(listen: SocketAddr, names: impl IntoIterator<Item = String>) -> Self {
        let names: Vec<_> = names.into_iter().map(|name| name.to_ascii_lowercase()).collect();
        let any = names.iter().any(|name| name == "*");
        Self { loopback_only: listen.ip().to_canonical().is_loopback(), any, names }
    }

    /// Whether `host`, as in a `Host` header, is ours.
    fn has(&self, host: &str) -> bool {
        if self.any {
            return true;
        }
        let Some(name) = without_port(host) else { return false };
        let literal = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
        if let Ok(ip) = literal.parse::<IpAddr>() {
            return !self.loopback_only || ip.to_canonical().is_loopback();
        }
        let name = name.strip_suffix('.').unwrap_or(name);
        name.eq_ignore_ascii_case("localhost")
            || self.names.iter().any(|ours| ours.eq_ignore_ascii_case(name))
    }
}

/// The name or address in front of the port, if the text is a host at all.
fn without_port(host: &str) -> Option<&str> {
    let end = match host.strip_prefix('[') {
        Some(rest) => rest.find(']')? + 2,
        None => host.find(':').unwrap_or(host.len()),
    };
    let (name, port) = host.split_at(end);
    let port_is_one =
        port.strip_prefix(':').map_or(port.is_empty(), |port| port.bytes().all(|b| b.is_ascii_digit()));
    (!name.is_empty() && port_is_one).then_some(name)
}

/// Refuses what may come from a web page.
pub fn refuse_web_pages(request: &Request, hosts: &AllowedHosts) -> ApiResult<()> {
    if needs_no_proof(request) {
        return Ok(());
    }
    let headers = request.headers();
    let host = checked_host(request, hosts)?;
    if is_cross_site(headers, host) && !follows_a_link(request) {
        let detail = "a web page of another site sent this request, and the server rejects such requests";
        return Err(ApiError::new(Code::CrossSite, detail));
    }
    if request.method() == Method::POST && !asked_before(headers) {
        let detail = "a POST needs `Content-Type: application/json`, even without a body, so that no web page can send \
                      it; with curl: -H 'content-type: application/json'";
        return Err(ApiError::new(Code::UnsupportedMediaType, detail));
    }
    Ok(())
}

fn needs_no_proof(request: &Request) -> bool {
    let path = request.uri().path();
    path.starts_with("/api/v1/attempts/") || matches!(path, "/healthz" | "/readyz")
}

/// The host that was asked, which has to be ours.
fn checked_host<'a>(request: &'a Request, hosts: &AllowedHosts) -> ApiResult<&'a str> {
    let mut given = request.headers().get_all(HOST).iter();
    let host = given.next().and_then(|host| host.to_str().ok()).unwrap_or_default();
    let in_target = request.uri().authority().map(|authority| authority.as_str());
    if given.next().is_none() && hosts.has(host) && in_target.is_none_or(|host| hosts.has(host)) {
        return Ok(host);
    }
    let shown: String = in_target.unwrap_or(host).chars().filter(|c| !c.is_control()).take(100).collect();
    let detail = format!(
        "this server does not answer for the host {shown:?}; ask for the address it listens on, or add the name to \
         server.allowed_hosts"
    );
    Err(ApiError::new(Code::HostNotAllowed, detail))
}

/// Whether a browser says that the request comes from another origin than the one it goes to.
fn is_cross_site(headers: &HeaderMap, host: &str) -> bool {
    let another_site =
        headers.get(SEC_FETCH_SITE).is_some_and(|site| site != "same-origin" && site != "none");
    another_site || headers.get(ORIGIN).is_some_and(|origin| !is_same_origin(origin.as_bytes(), host))
}

/// The scheme is not compared: a proxy in front may speak TLS.
fn is_same_origin(origin: &[u8], host: &str) -> bool {
    let authority = origin.strip_prefix(b"http://").or_else(|| origin.strip_prefix(b"https://"));
    authority.is_some_and(|authority| authority.eq_ignore_ascii_case(host.as_bytes()))
}

/// Whether somebody opens an address of ours in a window of their browser.
fn follows_a_link(request: &Request) -> bool {
    let headers = request.headers();
    let says = |name, value: &str| headers.get(name).is_some_and(|given| given == value);
    request.method() == Method::GET
        && !headers.contains_key(ORIGIN)
        && says(SEC_FETCH_MODE, "navigate")
        && says(SEC_FETCH_DEST, "document")
}

/// Whether a browser would have asked this server for leave before sending it.
fn asked_before(headers: &HeaderMap) -> bool {
    headers.contains_key(CLIENT)
        || headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).is_some_and(|media_type| {
            let essence = media_type.split(';').next().unwrap_or_default().trim();
            ["application/json", "text/calendar"].iter().any(|ours| essence.eq_ignore_ascii_case(ours))
        })
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn hosts(listen: &str, names: &[&str]) -> AllowedHosts {
        AllowedHosts::new(listen.parse().unwrap(), names.iter().map(|name| (*name).to_owned()))
    }

    #[test]
    fn a_server_on_loopback_is_asked_by_loopback_hosts_and_its_names() {
        let ours = hosts("127.0.0.1:7180", &["jobs.example.com"]);
        for host in [
            "127.0.0.1:7180",
            "127.8.9.1:7180",
            "127.0.0.1",
            "localhost:7180",
            "LocalHost:9999",
            "localhost.",
            "[::1]:7180",
            "[::ffff:127.0.0.1]",
            "jobs.example.com",
            "Jobs.Example.com:443",
        ] {
            assert!(ours.has(host), "{host}");
        }
        for host in [
            "",
            ":7180",
            "rebind.example",
            "rebind.example:7180",
            "127.0.0.1.rebind.example",
            "localhost.rebind.example",
            "xlocalhost",
            "10.0.0.5:7180",
            "[::1",
            "[::1]x",
            "localhost:7180@rebind.example",
            "localhost:7180, rebind.example",
        ] {
            assert!(!ours.has(host), "{host}");
        }
    }

    #[test]
    fn beyond_loopback_every_address_is_ours_and_a_name_only_if_it_was_configured() {
        let ours = hosts("0.0.0.0:7180", &["jobs"]);
        for host in ["10.0.0.5:7180", "127.0.0.1:7180", "[fd00::1]:7180", "localhost:7180", "jobs:7180"] {
            assert!(ours.has(host), "{host}");
        }
        assert!(!ours.has("rebind.example:7180"));
        assert!(hosts("0.0.0.0:7180", &["*"]).has("rebind.example:7180"));
    }

    fn outcome(method: &str, path: &str, headers: &[(&str, &str)]) -> &'static str {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::empty()).unwrap();
        match refuse_web_pages(&request, &hosts("127.0.0.1:7180", &[])) {
            Ok(()) => "answered",
            Err(error) => Code::parse(&error.0.code).unwrap().as_str(),
        }
    }

    const HOME: (&str, &str) = ("host", "localhost:7180");
    const JSON: (&str, &str) = ("content-type", "application/json");

    #[test]
    fn a_host_that_is_not_ours_is_refused_wherever_it_stands() {
        assert_eq!(outcome("GET", "/api/v1/jobs", &[HOME]), "answered");
        assert_eq!(outcome("GET", "/api/v1/jobs", &[]), "host_not_allowed");
        assert_eq!(outcome("GET", "/api/v1/jobs", &[("host", "rebind.example")]), "host_not_allowed");
        assert_eq!(outcome("GET", "/api/v1/jobs", &[HOME, ("host", "rebind.example")]), "host_not_allowed");
        assert_eq!(outcome("GET", "http://rebind.example/api/v1/jobs", &[HOME]), "host_not_allowed");
        assert_eq!(outcome("GET", "http://localhost:7180/api/v1/jobs", &[HOME]), "answered");
        assert_eq!(outcome("GET", "/metrics", &[("host", "rebind.example")]), "host_not_allowed");
    }

    #[test]
    fn another_site_is_refused_and_following_its_link_is_not() {
        let get = |headers: &[(&str, &str)]| outcome("GET", "/api/v1/jobs", &[&[HOME], headers].concat());
        for origin in
            ["http://evil.example", "null", "", "http://localhost:3000", "http://localhost", "file://"]
        {
            assert_eq!(get(&[("origin", origin)]), "cross_site", "{origin}");
        }
        for origin in ["http://localhost:7180", "https://LOCALHOST:7180"] {
            assert_eq!(get(&[("origin", origin)]), "answered", "{origin}");
        }
        for site in ["cross-site", "same-site", "odd"] {
            assert_eq!(get(&[("sec-fetch-site", site)]), "cross_site", "{site}");
        }
        for site in ["same-origin", "none"] {
            assert_eq!(get(&[("sec-fetch-site", site)]), "answered", "{site}");
        }
        let link = [
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-dest", "document"),
        ];
        assert_eq!(get(&link), "answered");
        assert_eq!(get(&[link[0], link[1], ("sec-fetch-dest", "iframe")]), "cross_site");
        let form = [&[HOME, JSON], &link[..]].concat();
        assert_eq!(outcome("POST", "/api/v1/admin/halt", &form), "cross_site");
    }

    #[test]
    fn a_post_that_any_page_could_send_is_refused() {
        let post =
            |headers: &[(&str, &str)]| outcome("POST", "/api/v1/admin/halt", &[&[HOME], headers].concat());
        assert_eq!(post(&[]), "unsupported_media_type");
        for simple in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "text/plain;application/json",
        ] {
            assert_eq!(post(&[("content-type", simple)]), "unsupported_media_type", "{simple}");
        }
        for ours in ["application/json", "Application/JSON; charset=utf-8", "text/calendar"] {
            assert_eq!(post(&[("content-type", ours)]), "answered", "{ours}");
        }
        assert_eq!(post(&[("tickwheel-client", "curl")]), "answered");
        assert_eq!(outcome("DELETE", "/api/v1/jobs/1", &[HOME]), "answered", "a browser asks first");
    }

    #[test]
    fn health_is_told_to_everybody_and_a_token_is_proof_enough() {
        for path in ["/healthz", "/readyz"] {
            assert_eq!(outcome("GET", path, &[("host", "balancer.example")]), "answered", "{path}");
        }
        assert_eq!(
            outcome("POST", "/api/v1/attempts/token/complete", &[("host", "jobs.internal")]),
            "answered"
        );
    }
}
