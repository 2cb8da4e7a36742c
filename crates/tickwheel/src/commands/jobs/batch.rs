//! `tickwheel jobs submit --batch`: many jobs, one JSON object per line.
//!
//! The file is never in memory as a whole. Each chunk is one request, which the server confirms before the next one is
//! sent. If something breaks, the message says up to which line everything is stored. A bad line does not affect the
//! others.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::value::RawValue;
use tickwheel_protocol::{BatchItem, BatchResult, BatchSubmit, Code, FieldError, Problem};

use super::CommandContext;
use crate::failure::{CommandError, said};
use crate::output::plain;

const CHUNK_JOBS_MAX: usize = 1_000;
const CHUNK_BYTES_MAX: usize = 4 << 20;
const REFUSALS_SHOWN_MAX: u64 = 20;

/// Submits the jobs of a file.
pub async fn run(path: &Path, context: &CommandContext) -> Result<(), CommandError> {
    let bad = |error: io::Error| {
        CommandError::BadInput(format!("cannot read {}: {}", path.display(), said(&error)))
    };
    let (reader, bytes): (Box<dyn BufRead>, _) = if path == Path::new("-") {
        (Box::new(io::stdin().lock()), None)
    } else {
        let file = File::open(path).map_err(bad)?;
        let bytes = file.metadata().map(|metadata| metadata.len()).ok();
        (Box::new(BufReader::new(file)), bytes)
    };
    let mut submission =
        Submission { context, bar: progress_bar(bytes), accepted: 0, refused: 0, last_line: 0 };
    let mut chunk = Chunk::default();
    for (index, line) in reader.lines().enumerate() {
        chunk.add(index + 1, &line.map_err(bad)?);
        if chunk.is_full() {
            submission.send(std::mem::take(&mut chunk)).await?;
        }
    }
    submission.send(chunk).await?;
    submission.finish()
}

fn progress_bar(bytes: Option<u64>) -> ProgressBar {
    let (bar, template) = match bytes {
        Some(bytes) => (ProgressBar::new(bytes), "{bar:30} {percent:>3}%  {msg}  {eta} left"),
        None => (ProgressBar::new_spinner(), "{spinner} {msg}"),
    };
    bar.with_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// Lines that go into one request.
#[derive(Default)]
struct Chunk {
    lines: Vec<Line>,
    bytes: usize,
}

struct Line {
    number: usize,
    /// The job, or why the line is not one.
    job: Result<Box<RawValue>, Problem>,
}

impl Chunk {
    fn add(&mut self, number: usize, text: &str) {
        self.bytes += text.len() + 1;
        if text.trim().is_empty() {
            return;
        }
        let not_json =
            |error: serde_json::Error| Problem::new(Code::InvalidJson, format!("not valid JSON: {error}"));
        self.lines.push(Line { number, job: serde_json::from_str(text).map_err(not_json) });
    }

    fn is_full(&self) -> bool {
        self.lines.len() >= CHUNK_JOBS_MAX || self.bytes >= CHUNK_BYTES_MAX
    }

    fn jobs(&self) -> Vec<Box<RawValue>> {
        self.lines.iter().filter_map(|line| line.job.as_ref().ok().cloned()).collect()
    }

    /// Pairs each line with its outcome. `results` has one entry per line that is a job.
    fn outcomes(self, results: Vec<BatchItem>) -> impl Iterator<Item = (usize, BatchItem)> {
        let mut results = results.into_iter();
        let missing =
            || BatchItem::Error(Problem::new(Code::Internal, "the server did not answer for this job"));
        self.lines.into_iter().map(move |line| {
            let outcome = match line.job {
                Ok(_) => results.next().unwrap_or_else(missing),
                Err(problem) => BatchItem::Error(problem),
            };
            (line.number, outcome)
        })
    }
}

struct Submission<'a> {
    context: &'a CommandContext,
    bar: ProgressBar,
    accepted: u64,
    refused: u64,
    last_line: usize,
}

impl Submission<'_> {
    async fn send(&mut self, chunk: Chunk) -> Result<(), CommandError> {
        let Some(last) = chunk.lines.last().map(|line| line.number) else { return Ok(()) };
        let jobs = chunk.jobs();
        let results = if jobs.is_empty() { Vec::new() } else { self.submit(jobs).await? };
        self.bar.inc(chunk.bytes as u64);
        for (line, outcome) in chunk.outcomes(results) {
            self.record(line, &outcome)?;
        }
        self.last_line = last;
        self.bar.set_message(format!("{} submitted, {} refused", self.accepted, self.refused));
        Ok(())
    }

    async fn submit(&self, jobs: Vec<Box<RawValue>>) -> Result<Vec<BatchItem>, CommandError> {
        let answer = self.context.client.post(&["jobs", "batch"]).json(&BatchSubmit { jobs })?.send().await;
        let answer = answer.inspect_err(|_| {
            self.bar.suspend(|| {
                let note = match self.last_line {
                    0 => "no line was acknowledged".to_owned(),
                    line => format!("lines 1 to {line} were acknowledged, the rest was not"),
                };
                self.context.output.note(&note);
            });
        })?;
        Ok(answer.read::<BatchResult>()?.results)
    }

    fn record(&mut self, line: usize, outcome: &BatchItem) -> Result<(), CommandError> {
        match outcome {
            BatchItem::Job(_) => self.accepted += 1,
            BatchItem::Error(problem) => {
                self.refused += 1;
                if self.refused <= REFUSALS_SHOWN_MAX {
                    let note = format!("line {line}: {} ({})", plain(&faults(problem)), plain(&problem.code));
                    self.bar.suspend(|| self.context.output.note(&note));
                }
            }
        }
        if self.context.output.json {
            let text = serde_json::to_string(outcome).map_err(anyhow::Error::from)?;
            self.bar.suspend(|| self.context.output.print(&text))?;
        }
        Ok(())
    }

    fn finish(self) -> Result<(), CommandError> {
        self.bar.finish_and_clear();
        if !self.context.output.json {
            self.context.output.print(&format!("{} submitted, {} refused", self.accepted, self.refused))?;
        }
        match self.refused {
            0 => Ok(()),
            1 => Err(CommandError::BadInput("1 line was refused".into())),
            refused => Err(CommandError::BadInput(format!("{refused} lines were refused"))),
        }
    }
}

/// What is wrong with a job, field by field. The pointers lead into the request; here they are made to lead into the
/// line.
fn faults(problem: &Problem) -> String {
    let fault = |error: &FieldError| {
        let field = error
            .pointer
            .strip_prefix("/jobs/")
            .map_or(error.pointer.as_str(), |place| place.find('/').map_or("", |end| &place[end..]));
        if field.is_empty() { error.detail.clone() } else { format!("{field}: {}", error.detail) }
    };
    match problem.errors.as_slice() {
        [] => problem.detail.clone(),
        errors => errors.iter().map(fault).collect::<Vec<_>>().join("; "),
    }
}

#[cfg(test)]
mod tests {
    use tickwheel_protocol::problem::FieldCode;

    use super::*;

    #[test]
    fn a_bad_line_is_answered_in_its_place_and_the_others_are_sent() {
        let mut chunk = Chunk::default();
        for (index, line) in ["{\"type\":\"a\"}", "", "{oops", "{\"type\":\"b\"}"].iter().enumerate() {
            chunk.add(index + 1, line);
        }
        assert_eq!(chunk.jobs().len(), 2);
        let refused = || BatchItem::Error(Problem::new(Code::Overloaded, "later"));
        let codes: Vec<_> = chunk
            .outcomes(vec![refused(), refused()])
            .map(|(line, outcome)| match outcome {
                BatchItem::Error(problem) => (line, problem.code),
                BatchItem::Job(_) => (line, "job".into()),
            })
            .collect();
        let code = |code: Code| code.as_str().to_owned();
        assert_eq!(
            codes,
            [(1, code(Code::Overloaded)), (3, code(Code::InvalidJson)), (4, code(Code::Overloaded))]
        );
    }

    #[test]
    fn a_refused_line_says_which_of_its_fields_are_wrong() {
        let field = |pointer: &str| FieldError {
            pointer: pointer.into(),
            code: FieldCode::TooLong,
            detail: "is too long".into(),
        };
        let one = Problem::invalid(vec![field("/type")]).below("/jobs/17");
        assert_eq!(faults(&one), "/type: is too long");
        let two = Problem::invalid(vec![field("/type"), field("/tags/3")]).below("/jobs/0");
        assert_eq!(faults(&two), "/type: is too long; /tags/3: is too long");
        assert_eq!(faults(&Problem::at(Code::WrongType, field("/jobs/2"))), "is too long");
        assert_eq!(faults(&Problem::new(Code::Overloaded, "later")), "later");
    }

    #[test]
    fn a_chunk_is_bounded_in_jobs_and_in_bytes() {
        let mut many = Chunk::default();
        (1..=CHUNK_JOBS_MAX).for_each(|number| many.add(number, "{}"));
        assert!(many.is_full());
        let mut large = Chunk::default();
        large.add(1, &format!("\"{}\"", "x".repeat(CHUNK_BYTES_MAX)));
        assert!(large.is_full());
    }
}
