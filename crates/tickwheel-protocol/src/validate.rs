//! The rules for a well-formed request. All broken rules are reported together, each with its JSON pointer.
//!
//! No rule here needs the store or the clock. Deliberately not here: whether a URL leads to a forbidden address. The
//! operator decides which addresses are forbidden, and only the connection shows where a name leads.

mod process;
mod schedule;
pub mod worker;
mod workflow;

use uuid::Uuid;

use crate::attempt::{CompleteAttempt, FailAttempt, ReportedError};
use crate::dead_letter::{Redrive, RedriveFilter};
use crate::job::{PatchJob, SubmitJob};
use crate::limits::Limits;
use crate::page;
use crate::pointer;
use crate::problem::{Code, FieldCode, FieldError, Problem};
use crate::retry::Retry;
use crate::target::{self, HttpTarget, Target};
use crate::time::Span;

/// Patterns for failures that are not retried, and characters of each.
const NON_RETRYABLE_LEN_MAX: usize = 20;
const NON_RETRYABLE_CHARS_MAX: usize = 200;

pub(crate) const METHODS: [&str; 6] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"];
const RESERVED_HEADERS: [&str; 13] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "upgrade",
    "te",
    "trailer",
    "expect",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "idempotency-key",
];
const RESERVED_HEADER_PREFIXES: [&str; 2] = ["tickwheel-", "webhook-"];

/// A request that can be checked against the limits.
pub trait Validate {
    /// Collects every broken rule.
    fn check(&self, rules: &mut Rules<'_>);

    /// Rejects the request if it breaks a rule.
    fn validate(&self, limits: &Limits) -> Result<(), Problem> {
        let mut rules = Rules { limits, errors: Vec::new(), too_large: None };
        self.check(&mut rules);
        match (rules.too_large, rules.errors) {
            (Some(field), _) => Err(Problem::at(Code::PayloadTooLarge, field)),
            (None, errors) if errors.is_empty() => Ok(()),
            (None, errors) => Err(Problem::invalid(errors)),
        }
    }
}

impl Validate for SubmitJob {
    fn check(&self, rules: &mut Rules<'_>) {
        rules.work(self);
        rules.name("/idempotency_key", self.idempotency_key.as_deref());
        rules.delay("/delay", self.delay, rules.limits.delay_seconds_max);
        if self.delay.is_some() && self.execute_at.is_some() {
            rules.broken("/delay", FieldCode::Conflict, "cannot be given together with execute_at");
        }
        rules.parents("/depends_on", self.depends_on.as_deref());
    }
}

impl Validate for PatchJob {
    fn check(&self, rules: &mut Rules<'_>) {
        rules.payload("/payload", self.payload.as_ref().map(|p| p.get()));
        rules.tags("/tags", self.tags.as_deref());
    }
}

impl Validate for Redrive {
    fn check(&self, rules: &mut Rules<'_>) {
        rules.payload("/payload", self.payload.as_ref().map(|p| p.get()));
    }
}

impl Validate for RedriveFilter {
    fn check(&self, rules: &mut Rules<'_>) {
        rules.name("/type", self.job_type.as_deref());
        rules.name("/queue", self.queue.as_deref());
        if !self.all && self.job_type.is_none() && self.queue.is_none() {
            let detail = "give a `type`, a `queue`, or `\"all\": true` for all of them";
            rules.broken("/all", FieldCode::InvalidValue, detail);
        }
        if self.limit.is_some_and(|limit| !(1..=page::LIMIT_MAX).contains(&limit)) {
            rules.broken("/limit", FieldCode::OutOfRange, format!("must be from 1 to {}", page::LIMIT_MAX));
        }
    }
}

impl Validate for CompleteAttempt {
    fn check(&self, rules: &mut Rules<'_>) {
        rules.payload("/result", self.result.as_ref().map(|r| r.get()));
    }
}

impl Validate for FailAttempt {
    fn check(&self, rules: &mut Rules<'_>) {
        if let Some(ReportedError::Coded(error)) = &self.error {
            rules.name("/error/code", error.code.as_deref());
        }
        rules.delay("/delay", self.delay, rules.limits.retry_delay_seconds_max);
    }
}

/// What is wrong with a name: it is empty, too long, or has control characters.
pub fn name_fault(name: &str, limits: &Limits) -> Option<(FieldCode, String)> {
    if name.is_empty() {
        return Some((FieldCode::InvalidValue, "must not be empty".into()));
    }
    text_fault(name, limits.name_chars_max)
}

fn text_fault(text: &str, chars_max: usize) -> Option<(FieldCode, String)> {
    if text.chars().count() > chars_max {
        return Some((FieldCode::TooLong, format!("must not be longer than {chars_max} characters")));
    }
    if text.chars().any(char::is_control) {
        return Some((FieldCode::InvalidValue, "must not contain control characters".into()));
    }
    None
}

/// The broken rules so far.
pub struct Rules<'a> {
    limits: &'a Limits,
    errors: Vec<FieldError>,
    too_large: Option<FieldError>,
}

impl Rules<'_> {
    /// Records a broken rule.
    pub(crate) fn broken(&mut self, pointer: impl Into<String>, code: FieldCode, detail: impl Into<String>) {
        self.errors.push(FieldError { pointer: pointer.into(), code, detail: detail.into() });
    }

    /// Checks a part of the request. The pointers of its broken rules begin with `prefix`.
    fn within(&mut self, prefix: &str, check: impl FnOnce(&mut Self)) {
        let (outer_errors, outer_too_large) = (std::mem::take(&mut self.errors), self.too_large.take());
        check(self);
        for error in self.errors.iter_mut().chain(&mut self.too_large) {
            error.pointer.insert_str(0, prefix);
        }
        self.errors.splice(0..0, outer_errors);
        self.too_large = outer_too_large.or(self.too_large.take());
    }

    /// Checks everything about a job except when and whether it runs.
    fn work(&mut self, job: &SubmitJob) {
        self.payload("/payload", job.payload.as_ref().map(|p| p.get()));
        self.name("/type", Some(&job.job_type));
        self.name("/queue", job.queue.as_deref());
        self.name("/concurrency_key", job.concurrency_key.as_deref());
        self.name("/created_by", job.created_by.as_deref());
        self.tags("/tags", job.tags.as_deref());
        match &job.target {
            Some(Target::Workflow(_)) => self.workflow_timeout("/timeout", job.timeout),
            _ => self.timeout("/timeout", job.timeout),
        }
        self.metadata("/metadata", job.metadata.as_ref().map(|m| m.get()));
        self.url("/callback_url", job.callback_url.as_deref());
        self.target(job.target.as_ref());
        self.retry(job.retry.as_ref());
        self.labels("/requires", job.requires.as_ref());
        // A run of a workflow is nobody's work; its tasks are.
        let is_run = matches!(job.target, Some(Target::Workflow(_)));
        if is_run && job.requires.as_ref().is_some_and(|labels| !labels.is_empty()) {
            self.broken(
                "/requires",
                FieldCode::Conflict,
                "only what a worker can run requires labels of one",
            );
        }
    }

    fn note(&mut self, pointer: &str, fault: Option<(FieldCode, String)>) {
        if let Some((code, detail)) = fault {
            self.broken(pointer, code, detail);
        }
    }

    fn name(&mut self, pointer: &str, name: Option<&str>) {
        self.note(pointer, name.and_then(|name| name_fault(name, self.limits)));
    }

    fn payload(&mut self, pointer: &str, json: Option<&str>) {
        self.json_up_to(pointer, json, self.limits.payload_bytes_max);
    }

    fn json_up_to(&mut self, pointer: &str, json: Option<&str>, bytes_max: usize) {
        if json.is_some_and(|json| json.len() > bytes_max) {
            self.too_large = Some(FieldError {
                pointer: pointer.into(),
                code: FieldCode::TooLong,
                detail: format!("must not be larger than {bytes_max} bytes"),
            });
        }
    }

    fn metadata(&mut self, pointer: &str, json: Option<&str>) {
        let bytes_max = self.limits.metadata_bytes_max;
        if json.is_some_and(|json| json.len() > bytes_max) {
            self.broken(pointer, FieldCode::TooLong, format!("must not be larger than {bytes_max} bytes"));
        }
    }

    fn delay(&mut self, pointer: &str, delay: Option<Span>, seconds_max: u64) {
        let longest = Span::from_millis(seconds_max.saturating_mul(1000));
        if delay.is_some_and(|delay| delay > longest) {
            self.broken(pointer, FieldCode::OutOfRange, format!("must not be longer than {longest}"));
        }
    }

    /// A workflow run may take as long as its default.
    fn workflow_timeout(&mut self, pointer: &str, timeout: Option<Span>) {
        let usual = target::WORKFLOW_TIMEOUT_DEFAULT.as_millis() / 1000;
        self.timeout_up_to(pointer, timeout, self.limits.timeout_seconds_max.max(usual));
    }

    fn timeout(&mut self, pointer: &str, timeout: Option<Span>) {
        self.timeout_up_to(pointer, timeout, self.limits.timeout_seconds_max);
    }

    fn timeout_up_to(&mut self, pointer: &str, timeout: Option<Span>, seconds_max: u64) {
        self.delay(pointer, timeout, seconds_max);
        if timeout.is_some_and(|timeout| timeout.as_millis() == 0) {
            self.broken(pointer, FieldCode::OutOfRange, "must be 1ms or longer");
        }
    }

    fn tags(&mut self, pointer: &str, tags: Option<&[String]>) {
        let tags = tags.unwrap_or_default();
        let tags_max = self.limits.tags_max;
        if tags.len() > tags_max {
            self.broken(pointer, FieldCode::TooMany, format!("must not have more than {tags_max} entries"));
            return;
        }
        for (index, tag) in tags.iter().enumerate() {
            let fault = match tag.as_str() {
                "" => Some((FieldCode::InvalidValue, "must not be empty".into())),
                tag => text_fault(tag, self.limits.tag_chars_max),
            };
            let mut place = pointer.to_owned();
            pointer::push_index(&mut place, index);
            self.note(&place, fault);
        }
    }

    /// Checks the form of the ids. Only the store knows whether the jobs exist.
    fn parents(&mut self, pointer: &str, ids: Option<&[String]>) {
        let ids = ids.unwrap_or_default();
        let ids_max = self.limits.depends_on_max;
        if ids.len() > ids_max {
            self.broken(pointer, FieldCode::TooMany, format!("must not have more than {ids_max} entries"));
            return;
        }
        for (index, _) in ids.iter().enumerate().filter(|(_, id)| Uuid::try_parse(id).is_err()) {
            let mut place = pointer.to_owned();
            pointer::push_index(&mut place, index);
            self.broken(place, FieldCode::InvalidValue, "must be the id of a job, a UUID");
        }
    }

    fn target(&mut self, target: Option<&Target>) {
        match target {
            None | Some(Target::Worker(_)) => {}
            Some(Target::Http(http)) => self.http_target(http),
            Some(Target::Workflow(workflow)) => self.workflow_name("/target/workflow/name", &workflow.name),
            Some(Target::FanOut(_)) => {
                self.broken(
                    "/target/fan_out",
                    FieldCode::Reserved,
                    "is reserved for fan-outs of workflows; use for_each",
                );
            }
            Some(Target::Process(process)) => self.process_target(process),
            Some(Target::Message(_)) => {
                self.broken(
                    "/target/message",
                    FieldCode::NotSupported,
                    "message targets are not available yet",
                );
            }
        }
    }

    fn http_target(&mut self, http: &HttpTarget) {
        self.url("/target/http/url", Some(&http.url));
        if !METHODS.contains(&http.method.as_str()) {
            let detail = format!("must be one of {}", METHODS.join(", "));
            self.broken("/target/http/method", FieldCode::InvalidValue, detail);
        }
        let headers_max = self.limits.headers_max;
        if http.headers.len() > headers_max {
            let detail = format!("must not have more than {headers_max} entries");
            self.broken("/target/http/headers", FieldCode::TooMany, detail);
            return;
        }
        for (name, value) in &http.headers {
            let mut place = "/target/http/headers".to_owned();
            pointer::push_key(&mut place, name);
            self.note(&place, header_fault(name, value, self.limits));
        }
    }

    fn url(&mut self, pointer: &str, url: Option<&str>) {
        self.note(pointer, url.and_then(|url| url_fault(url, self.limits.url_chars_max)));
    }

    fn retry(&mut self, retry: Option<&Retry>) {
        let Some(retry) = retry else { return };
        let retries_max = self.limits.retries_max;
        if retry.max_retries.is_some_and(|retries| retries > retries_max) {
            let detail = format!("must not be more than {retries_max}");
            self.broken("/retry/max_retries", FieldCode::OutOfRange, detail);
        }
        if retry.jitter.is_some_and(|jitter| !(0.0..=1.0).contains(&jitter)) {
            self.broken("/retry/jitter", FieldCode::OutOfRange, "must be from 0 to 1");
        }
        let seconds_max = self.limits.retry_delay_seconds_max;
        self.delay("/retry/initial_delay", retry.initial_delay, seconds_max);
        self.delay("/retry/max_delay", retry.max_delay, seconds_max);
        if let (Some(initial), Some(max)) = (retry.initial_delay, retry.max_delay)
            && initial > max
        {
            self.broken("/retry/initial_delay", FieldCode::Conflict, "must not be longer than max_delay");
        }
        self.retry_delays(retry.delays.as_deref());
        self.non_retryable(retry.non_retryable.as_deref().unwrap_or_default());
    }

    fn non_retryable(&mut self, patterns: &[String]) {
        if patterns.len() > NON_RETRYABLE_LEN_MAX {
            let detail = format!("must not have more than {NON_RETRYABLE_LEN_MAX} entries");
            return self.broken("/retry/non_retryable", FieldCode::TooMany, detail);
        }
        for (index, pattern) in patterns.iter().enumerate() {
            if !(1..=NON_RETRYABLE_CHARS_MAX).contains(&pattern.chars().count()) {
                let detail = format!("must have 1 to {NON_RETRYABLE_CHARS_MAX} characters");
                self.broken(format!("/retry/non_retryable/{index}"), FieldCode::InvalidValue, detail);
            }
        }
    }

    fn retry_delays(&mut self, delays: Option<&[Span]>) {
        let Some(delays) = delays else { return };
        if delays.is_empty() {
            self.broken("/retry/delays", FieldCode::InvalidValue, "must not be empty");
        }
        let retries_max = self.limits.retries_max;
        if delays.len() > usize::try_from(retries_max).unwrap_or(usize::MAX) {
            let detail = format!("must not have more than {retries_max} entries");
            self.broken("/retry/delays", FieldCode::TooMany, detail);
            return;
        }
        for (index, delay) in delays.iter().enumerate() {
            self.delay(&format!("/retry/delays/{index}"), Some(*delay), self.limits.retry_delay_seconds_max);
        }
    }
}

fn url_fault(text: &str, chars_max: usize) -> Option<(FieldCode, String)> {
    let invalid = |detail: &str| Some((FieldCode::InvalidValue, detail.to_owned()));
    if text.len() > chars_max {
        return Some((FieldCode::TooLong, format!("must not be longer than {chars_max} characters")));
    }
    // The URL parser would quietly drop or rewrite anything else, and another parser further on might not.
    if !text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=%".contains(&b)) {
        return invalid("must consist of the characters of a URL; percent-encode the others");
    }
    let lower = text.to_ascii_lowercase();
    let Some(rest) = lower.strip_prefix("http://").or_else(|| lower.strip_prefix("https://")) else {
        return invalid("must be an absolute http or https URL");
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        return invalid("must not contain user info");
    }
    if authority.is_empty() || authority.starts_with(':') {
        return invalid("must name a host");
    }
    match url::Url::parse(text) {
        Ok(_) => None,
        Err(error) => invalid(&format!("is not a valid URL: {error}")),
    }
}

fn header_fault(name: &str, value: &str, limits: &Limits) -> Option<(FieldCode, String)> {
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if name.is_empty() || name.len() > limits.name_chars_max || !name.bytes().all(is_token) {
        return Some((FieldCode::InvalidValue, "is not a valid header name".into()));
    }
    let lower = name.to_ascii_lowercase();
    if RESERVED_HEADERS.contains(&lower.as_str())
        || RESERVED_HEADER_PREFIXES.iter().any(|prefix| lower.starts_with(prefix))
    {
        return Some((FieldCode::Reserved, "is set by Tickwheel itself, and would not be sent".into()));
    }
    if value.len() > limits.header_chars_max {
        let detail = format!("must not be longer than {} characters", limits.header_chars_max);
        return Some((FieldCode::TooLong, detail));
    }
    if !value.bytes().all(|b| b == b'\t' || (b' '..=b'~').contains(&b)) {
        return Some((FieldCode::InvalidValue, "must be printable ASCII".into()));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strict_json;

    fn broken(json: &str) -> Vec<(String, FieldCode)> {
        let job: SubmitJob = strict_json::read(json.as_bytes(), 64).expect(json);
        match job.validate(&Limits::default()) {
            Ok(()) => Vec::new(),
            Err(problem) => problem.errors.into_iter().map(|e| (e.pointer, e.code)).collect(),
        }
    }

    const ID: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

    /// A list of so many ids, all of them the same.
    fn parents(count: usize) -> String {
        serde_json::to_string(&vec![ID; count]).unwrap()
    }

    fn broken_with(field: &str) -> Vec<(String, FieldCode)> {
        broken(&format!(r#"{{"type":"t",{field}}}"#))
    }

    #[test]
    fn the_example_of_the_documentation_is_valid() {
        let errors = broken(
            r#"{ "type": "send_email",
            "target": {"http": {"url": "https://svc/run", "method": "POST", "headers": {}}},
            "payload": {"any": "json"}, "execute_at": "2026-12-01T15:00:00Z",
            "queue": "default", "priority": "normal",
            "retry": {"max_retries": 3, "backoff": "exponential", "initial_delay": "1s", "max_delay": "1h",
                      "jitter": 0.1, "delays": null},
            "timeout": "300s", "delivery": "at_least_once",
            "depends_on": [], "tags": [], "metadata": {}, "concurrency_key": null, "requires": {},
            "callback_url": null, "idempotency_key": null }"#,
        );
        assert_eq!(errors, []);
    }

    #[test]
    fn every_broken_rule_is_reported_with_its_place() {
        use FieldCode::*;
        let long = "x".repeat(256);
        let tags = format!("[{}]", vec!["\"t\""; 65].join(","));
        let delays = format!("[{}]", vec!["1"; 101].join(","));
        let cases: Vec<(String, &str, FieldCode)> = vec![
            (format!(r#""queue":"{long}""#), "/queue", TooLong),
            (r#""queue":"""#.into(), "/queue", InvalidValue),
            (r#""queue":"a\u0000b""#.into(), "/queue", InvalidValue),
            (format!(r#""idempotency_key":"{long}""#), "/idempotency_key", TooLong),
            (r#""concurrency_key":"a\nb""#.into(), "/concurrency_key", InvalidValue),
            (r#""execute_at":"2026-01-01T00:00:00Z","delay":1"#.into(), "/delay", Conflict),
            (r#""delay":"100000d""#.into(), "/delay", OutOfRange),
            (format!(r#""tags":{tags}"#), "/tags", TooMany),
            (format!(r#""tags":["ok","{long}"]"#), "/tags/1", TooLong),
            (r#""tags":[""]"#.into(), "/tags/0", InvalidValue),
            (r#""timeout":0"#.into(), "/timeout", OutOfRange),
            (r#""timeout":"25h""#.into(), "/timeout", OutOfRange),
            (r#""target":{"workflow":{"name":""}}"#.into(), "/target/workflow/name", InvalidValue),
            (r#""target":{"workflow":{"name":"w"}},"timeout":"8d""#.into(), "/timeout", OutOfRange),
            (r#""retry":{"max_retries":101}"#.into(), "/retry/max_retries", OutOfRange),
            (r#""retry":{"jitter":1.01}"#.into(), "/retry/jitter", OutOfRange),
            (r#""retry":{"jitter":-0.1}"#.into(), "/retry/jitter", OutOfRange),
            (r#""retry":{"initial_delay":2,"max_delay":1}"#.into(), "/retry/initial_delay", Conflict),
            (r#""retry":{"delays":[]}"#.into(), "/retry/delays", InvalidValue),
            (r#""retry":{"non_retryable":["a",""]}"#.into(), "/retry/non_retryable/1", InvalidValue),
            (format!(r#""retry":{{"non_retryable":{:?}}}"#, vec!["a"; 21]), "/retry/non_retryable", TooMany),
            (format!(r#""retry":{{"delays":{delays}}}"#), "/retry/delays", TooMany),
            (format!(r#""depends_on":["{ID}","{ID}","x"]"#), "/depends_on/2", InvalidValue),
            (r#""depends_on":[""]"#.into(), "/depends_on/0", InvalidValue),
            (format!(r#""depends_on":{}"#, parents(1_001)), "/depends_on", TooMany),
            (r#""requires":{"gpu":""}"#.into(), "/requires/gpu", InvalidValue),
            (r#""target":{"fan_out":{}}"#.into(), "/target/fan_out", Reserved),
            (r#""target":{"message":{"topic":"t"}}"#.into(), "/target/message", NotSupported),
            (r#""callback_url":"ftp://a/""#.into(), "/callback_url", InvalidValue),
            (format!(r#""metadata":{{"a":"{}"}}"#, "x".repeat(65536)), "/metadata", TooLong),
        ];
        for (field, pointer, code) in cases {
            assert_eq!(broken_with(&field), [(pointer.to_owned(), code)], "{field}");
        }
        assert_eq!(broken(r#"{"type":"","queue":"","timeout":0}"#).len(), 3);
    }

    #[test]
    fn a_job_may_depend_on_a_thousand_others_and_name_one_twice() {
        for count in [0, 1, 1_000] {
            assert_eq!(broken_with(&format!(r#""depends_on":{}"#, parents(count))), [], "{count}");
        }
        assert_eq!(broken_with(r#""depends_on":["x","y"]"#).len(), 2, "every entry that is wrong is named");
    }

    #[test]
    fn urls_are_http_without_user_info_and_without_characters_parsers_disagree_on() {
        let fault = |url: &str| url_fault(url, 2048);
        for good in
            ["https://svc/run", "HTTP://EXAMPLE.com:8080?q=1#f", "http://[::1]:7180/x", "http://127.1/%20"]
        {
            assert_eq!(fault(good), None, "{good}");
        }
        for bad in [
            "",
            "svc/run",
            "/run",
            "file:///etc/passwd",
            "gopher://a/",
            "javascript:alert(1)",
            "http:",
            "http://",
            "http:///path",
            "http://:80/",
            "http://user@host/",
            "http://user:secret@host/",
            "http://@host/",
            "http://ho st/",
            "http://host/\r\nx: y",
            "http:\\\\host\\",
            "http://host\\@evil/",
            "http://host:99999/",
            "http://[::1/",
            "http://h%00st/",
            "http://höst/",
        ] {
            assert!(fault(bad).is_some(), "{bad}");
        }
        assert!(fault(&format!("http://host/{}", "a".repeat(2048))).is_some());
    }

    #[test]
    fn headers_cannot_break_out_or_replace_our_own() {
        let fault =
            |name: &str, value: &str| header_fault(name, value, &Limits::default()).map(|(code, _)| code);
        assert_eq!(fault("X-Api-Key", "abc def"), None);
        for name in ["", "a b", "a:b", "a\r\nb", "é"] {
            assert_eq!(fault(name, "v"), Some(FieldCode::InvalidValue), "{name}");
        }
        for value in ["a\r\nSet-Cookie: b", "a\nb", "a\0b", "é"] {
            assert_eq!(fault("x", value), Some(FieldCode::InvalidValue), "{value}");
        }
        for name in [
            "Host",
            "content-length",
            "Transfer-Encoding",
            "Proxy-Authorization",
            "proxy-authenticate",
            "Proxy-Connection",
            "Keep-Alive",
            "Idempotency-Key",
            "Tickwheel-Token",
            "webhook-id",
        ] {
            assert_eq!(fault(name, "v"), Some(FieldCode::Reserved), "{name}");
        }
    }

    #[test]
    fn a_payload_may_have_exactly_its_limit_and_not_a_byte_more() {
        let submit = |bytes: usize| {
            let json = format!(r#"{{"type":"t","payload":"{}"}}"#, "x".repeat(bytes - 2));
            let job: SubmitJob = strict_json::read(json.as_bytes(), 64).unwrap();
            job.validate(&Limits::default()).map_err(|problem| problem.code)
        };
        assert_eq!(submit(256 << 10), Ok(()));
        assert_eq!(submit((256 << 10) + 1), Err("payload_too_large".into()));
    }
}
