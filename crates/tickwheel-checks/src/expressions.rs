//! What workflows are written with: conditions, paths into data, and payloads that refer to data.
//!
//! The input has up to three lines: a condition or path, the run's input (JSON), and a payload (JSON).
//!
//! - A path reads back as it is printed, and leads to the same value.
//! - Conditions keep the laws of logic, and comparisons those of an order.
//! - A payload is what one gets by putting the values in place one by one, and references to large values lead to these
//!   values.

use std::sync::Arc;

use serde_json::Value;
use tickwheel_core::job::HttpTarget;
use tickwheel_core::payload::Piece;
use tickwheel_core::schedule::JobTemplate;
use tickwheel_core::workflow::{
    Condition, Graph, GraphLimits, Path, ReferenceSource, TaskSpec, TriggerRule, Work, Workflow,
    WorkflowSpec, begin,
};
use tickwheel_core::{JobSpec, JsonText, Payload, Priority, RunId, Target, Timestamp};
use uuid::Uuid;

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);
const COMPARED_MAX: usize = 4;

/// Checks what the module says.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut lines = text.lines();
    let expression = lines.next().unwrap_or_default();
    let input: Value = lines.next().and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default();
    if let Ok(path) = Path::parse(expression) {
        check_path(&path, &input);
    }
    if let Ok(condition) = Condition::parse(expression) {
        check_condition(expression, &condition, &input);
    }
    check_order(&input);
    if let Some(payload) = lines.next().and_then(|json| serde_json::from_str(json).ok()) {
        check_payload(&payload, &input);
    }
}

fn check_path(path: &Path, input: &Value) {
    let printed = path.to_string();
    let again = Path::parse(&printed).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(&again, path, "{printed}");
    assert_eq!(again.walk(input), path.walk(input), "{printed}");
}

fn holds(condition: &Condition, input: &Value) -> bool {
    condition.holds(&|path| (path.root == "input").then(|| path.walk(input).ok().cloned()).flatten())
}

/// Whether a text holds; `None` if it is no condition, as one in parentheses may be nested too deeply.
fn text_holds(text: &str, input: &Value) -> Option<bool> {
    Condition::parse(text).ok().map(|condition| holds(&condition, input))
}

fn check_condition(text: &str, condition: &Condition, input: &Value) {
    condition.paths().into_iter().for_each(|path| check_path(path, input));
    let truth = holds(condition, input);
    for (around, expected) in [
        (format!("({text})"), truth),
        (format!("not ({text})"), !truth),
        (format!("not not ({text})"), truth),
        (format!("({text}) and true"), truth),
        (format!("false or ({text})"), truth),
        (format!("({text}) or ({text})"), truth),
        (format!("({text}) and not ({text})"), false),
    ] {
        assert!(text_holds(&around, input).is_none_or(|found| found == expected), "{around}");
    }
}

/// The laws of comparison, for the elements of an array.
fn check_order(input: &Value) {
    let Value::Array(elements) = input else { return };
    let count = elements.len().min(COMPARED_MAX);
    let is = |left: usize, op: &str, right: usize| {
        text_holds(&format!("input[{left}] {op} input[{right}]"), input).expect("a condition")
    };
    for a in 0..count {
        assert!(is(a, "==", a), "{}", elements[a]);
        for b in 0..count {
            let pair = || format!("{} and {}", elements[a], elements[b]);
            assert_eq!(is(a, "==", b), is(b, "==", a), "{}", pair());
            assert_eq!(is(a, "!=", b), !is(a, "==", b), "{}", pair());
            assert_eq!(is(a, "<", b), is(b, ">", a), "{}", pair());
            assert_eq!(is(a, "<=", b), is(b, ">=", a), "{}", pair());
            assert!(!(is(a, "<", b) && is(a, ">", b)), "{}", pair());
            let is_ordered = is(a, "<=", b) || is(a, ">=", b);
            assert_eq!(is(a, "<=", b), is(a, "<", b) || is_ordered && is(a, "==", b), "{}", pair());
            let wrapped = text_holds(&format!("[{}] == [{}]", elements[a], elements[b]), input);
            assert!(wrapped.is_none_or(|equal| equal == is(a, "==", b)), "{} in arrays", pair());
            for c in 0..count {
                let three = || format!("{}, {} and {}", elements[a], elements[b], elements[c]);
                assert!(!(is(a, "<", b) && is(b, "<", c)) || is(a, "<", c), "{}", three());
                assert!(!(is(a, "==", b) && is(b, "==", c)) || is(a, "==", c), "{}", three());
            }
        }
    }
}

fn check_payload(payload: &Value, input: &Value) {
    let workflow = workflow(payload);
    let Ok(graph) = Graph::checked(&workflow.spec, GraphLimits::default()) else { return };
    let input_text = JsonText::from_checked(input.to_string());
    let id = RunId::fresh(Uuid::from_u128(0x0198_0000_0000_7000_8000_0000_0000_0000));
    let begun = begin(&graph, &workflow, id, input_text.clone(), None, NOW);
    let Some(expected) = replaced(payload, input) else { return };
    match (begun, expected) {
        (Ok(begun), Ok(expected)) => {
            let made = whole(&begun.jobs.jobs[0].payload, &input_text);
            let made: Value = serde_json::from_str(&made).unwrap_or_else(|error| panic!("{error} in {made}"));
            assert_eq!(made, expected);
        }
        (Err(refused), Err(())) => assert!(refused.to_string().contains("$from"), "{refused}"),
        (begun, expected) => panic!("{begun:?} and not {expected:?}"),
    }
}

/// A workflow of one task with this payload.
fn workflow(payload: &Value) -> Workflow {
    let target =
        Target::Http(HttpTarget { url: "http://localhost/".into(), method: "POST".into(), headers: vec![] });
    let job = JobTemplate {
        job_type: "work".into(),
        queue: "default".into(),
        priority: Priority::Normal,
        spec: Arc::new(JobSpec::new(target)),
        payload: JsonText::from_checked(payload.to_string()),
        tags: Vec::new(),
    };
    let task = TaskSpec {
        name: "t".into(),
        depends_on: Vec::new(),
        rule: TriggerRule::AllSucceeded,
        when: None,
        work: Work::Job(job),
    };
    let spec = Arc::new(WorkflowSpec { tasks: vec![task], ..WorkflowSpec::default() });
    Workflow { tenant: "default".into(), name: "w".into(), version: 1, created_at: NOW, spec }
}

/// The payload with values in place of references; an error if one leads nowhere, `None` if one does not lead into the
/// input.
fn replaced(payload: &Value, input: &Value) -> Option<Result<Value, ()>> {
    Some(match payload {
        Value::Array(elements) => {
            elements.iter().map(|element| replaced(element, input)).collect::<Option<Result<_, _>>>()?
        }
        Value::Object(fields) if fields.contains_key("$literal") => Ok(fields["$literal"].clone()),
        Value::Object(fields) => match fields.get("$from") {
            Some(path) => {
                let path = Path::parse(path.as_str()?).ok().filter(|path| path.root == "input")?;
                path.walk(input).ok().or(fields.get("default")).cloned().ok_or(())
            }
            None => {
                let fields = fields.iter().map(|(name, value)| Some((name.clone(), replaced(value, input)?)));
                let fields = fields.collect::<Option<Vec<_>>>()?.into_iter();
                fields.map(|(name, value)| Ok((name, value?))).collect()
            }
        },
        plain => Ok(plain.clone()),
    })
}

/// The document that is sent.
fn whole(payload: &Payload, input: &JsonText) -> String {
    let pieces = payload.pieces().expect("a payload can be taken apart");
    let text = |piece| match piece {
        Piece::Text(text) => text,
        Piece::Reference(reference) => {
            let found = reference.resolve_in(ReferenceSource::Input(input));
            found.unwrap_or_else(|why| panic!("{reference:?}: {why}")).to_string()
        }
    };
    pieces.into_iter().map(text).collect()
}
