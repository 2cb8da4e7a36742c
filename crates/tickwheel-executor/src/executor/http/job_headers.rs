//! What a target is told about the job beside the attempt: its tags, who created it, its metadata, and the trace it
//! belongs to.
//!
//! Headers carry plain ASCII and not much of it. So texts are percent-encoded, JSON is written with `\u` escapes, and
//! what would be too long is left out: it can be asked of the API.

use std::fmt::Write as _;

use tickwheel_core::{Job, JsonText};

/// A longer header is left out.
const VALUE_BYTES_MAX: usize = 4 << 10;

/// The headers, by name.
pub(super) fn job_headers(job: &Job) -> impl Iterator<Item = (&'static str, String)> {
    let tags = (!job.tags.is_empty()).then(|| {
        let tags: Vec<String> = job.tags.iter().map(|tag| percent_encoded(tag)).collect();
        ("tickwheel-tags", tags.join(","))
    });
    let created_by = job.spec.created_by.as_deref().map(|who| ("tickwheel-created-by", percent_encoded(who)));
    let metadata = &job.spec.metadata;
    let metadata = (!metadata.is_empty_object()).then(|| ("tickwheel-metadata", in_ascii(metadata)));
    let trace = ("traceparent", trace_of(job));
    let all = tags.into_iter().chain(created_by).chain(metadata).chain([trace]);
    all.filter(|(_, value)| value.len() <= VALUE_BYTES_MAX)
}

/// The trace that the attempt belongs to.
pub(in crate::executor) fn trace_of(job: &Job) -> String {
    job.spec.traceparent.clone().unwrap_or_else(|| own_trace(job))
}

/// A trace for a job that was submitted without one: all attempts of the job are in it, each as a span of its own.
fn own_trace(job: &Job) -> String {
    let id = job.id.as_uuid().as_u128();
    // Never zero: the bits that say which kind of id it is are among them.
    let span = (id as u64) ^ u64::from(job.attempt);
    format!("00-{id:032x}-{span:016x}-01")
}

fn percent_encoded(text: &str) -> String {
    text.bytes().fold(String::with_capacity(text.len()), |mut encoded, byte| {
        match byte {
            b'!'..=b'~' if byte != b'%' && byte != b',' => encoded.push(char::from(byte)),
            _ => write!(encoded, "%{byte:02X}").expect("a text can be written to"),
        }
        encoded
    })
}

/// The same document in ASCII and on one line.
fn in_ascii(document: &JsonText) -> String {
    let text = document.as_str();
    text.chars().fold(String::with_capacity(text.len()), |mut ascii, c| {
        match c {
            ' '..='~' => ascii.push(c),
            // Only between values: in a string it is escaped already.
            '\n' | '\r' | '\t' => ascii.push(' '),
            _ => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(ascii, "\\u{unit:04x}").expect("a text can be written to");
                }
            }
        }
        ascii
    })
}

#[cfg(test)]
mod tests {
    use tickwheel_core::{JobId, JobSpec, Target, Timestamp};
    use uuid::Uuid;

    use super::*;

    fn job(spec: JobSpec, tags: &[&str]) -> Job {
        let id = JobId::from_uuid(Uuid::from_u128(0x0199_0000_0000_7000_8000_0000_0000_0001));
        let mut job = Job::new(id, "t", spec, Timestamp::EPOCH);
        job.tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
        job.attempt = 3;
        job
    }

    #[test]
    fn texts_and_documents_fit_into_headers() {
        let spec = JobSpec {
            created_by: Some("Zoë, 100 %".into()),
            metadata: JsonText::from_checked("{\n \"é\": \"😀 a\"}"),
            traceparent: Some("theirs".into()),
            ..JobSpec::new(Target::Worker)
        };
        let told: Vec<_> = job_headers(&job(spec, &["a", "b,c", "nächtlich"])).collect();
        let expected = [
            ("tickwheel-tags", "a,b%2Cc,n%C3%A4chtlich"),
            ("tickwheel-created-by", "Zo%C3%AB%2C%20100%20%25"),
            ("tickwheel-metadata", r#"{  "\u00e9": "\ud83d\ude00 a"}"#),
            ("traceparent", "theirs"),
        ];
        assert_eq!(told, expected.map(|(name, value)| (name, value.to_owned())));
    }

    #[test]
    fn a_job_that_says_nothing_begins_a_trace_and_what_is_too_long_is_left_out() {
        let own = ("traceparent", "00-01990000000070008000000000000001-8000000000000002-01".to_owned());
        assert_eq!(
            job_headers(&job(JobSpec::new(Target::Worker), &[])).collect::<Vec<_>>(),
            std::slice::from_ref(&own)
        );
        let metadata = JsonText::from_checked(format!("{{\"a\":\"{}\"}}", "x".repeat(VALUE_BYTES_MAX)));
        let spec = JobSpec { metadata, ..JobSpec::new(Target::Worker) };
        assert_eq!(job_headers(&job(spec, &[])).collect::<Vec<_>>(), [own]);
    }
}
