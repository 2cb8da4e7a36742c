//! As much of PostgreSQL's wire protocol as it takes to recognise the answer to a commit, and what was committed.
//!
//! A transaction is either between `BEGIN` and `COMMIT`, which are simple queries, or a single prepared statement that
//! is committed by the `Sync` after it.

use std::collections::HashMap;

/// How a transaction is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commit {
    /// By `COMMIT`.
    Explicit,
    /// By the end of its only statement.
    Implicit,
}

/// Follows what a client says on one connection.
#[derive(Default)]
pub struct ClientSide {
    started: bool,
    rest: Vec<u8>,
    statements: HashMap<String, String>,
    portals: HashMap<String, String>,
    in_transaction: bool,
    /// The statements that were executed since the transaction began.
    executed: Vec<String>,
}

impl ClientSide {
    /// Takes in what was said; answers whether it commits a transaction with a statement that contains `wanted`.
    pub fn hear(&mut self, bytes: &[u8], wanted: Option<&str>) -> Option<Commit> {
        self.rest.extend_from_slice(bytes);
        let mut found = None;
        if !self.started {
            // The first message has a length and no type.
            let (_, len) = frame(&self.rest, 0)?;
            self.rest.drain(..len);
            self.started = true;
        }
        while let Some((body, end)) = frame(&self.rest, 1) {
            let (kind, body) = (self.rest[0], body.to_vec());
            self.rest.drain(..end);
            found = self.message(kind, &body, wanted).or(found);
        }
        found
    }

    fn message(&mut self, kind: u8, body: &[u8], wanted: Option<&str>) -> Option<Commit> {
        let mut texts = body.split(|byte| *byte == 0).map(|text| String::from_utf8_lossy(text).into_owned());
        let mut next = || texts.next().unwrap_or_default();
        match kind {
            b'Q' => return self.simple_query(&next(), wanted),
            b'P' => drop(self.statements.insert(next(), next())),
            b'B' => {
                let (portal, statement) = (next(), next());
                let text = self.statements.get(&statement).cloned().unwrap_or_default();
                self.portals.insert(portal, text);
            }
            b'E' => self.executed.push(self.portals.get(&next()).cloned().unwrap_or_default()),
            b'S' if !self.in_transaction => return self.ended(Commit::Implicit, wanted),
            _ => {}
        }
        None
    }

    fn simple_query(&mut self, text: &str, wanted: Option<&str>) -> Option<Commit> {
        match text.split([' ', ';']).next().unwrap_or_default() {
            "BEGIN" | "START" => {
                self.in_transaction = true;
                self.executed.clear();
            }
            "COMMIT" => {
                self.in_transaction = false;
                return self.ended(Commit::Explicit, wanted);
            }
            "ROLLBACK" => {
                self.in_transaction = false;
                self.executed.clear();
            }
            _ => self.executed.push(text.to_owned()),
        }
        None
    }

    fn ended(&mut self, commit: Commit, wanted: Option<&str>) -> Option<Commit> {
        let executed = std::mem::take(&mut self.executed);
        let wanted = wanted?;
        executed.iter().any(|text| text.contains(wanted)).then_some(commit)
    }
}

/// What a server said, as far as it matters here.
#[derive(Debug, PartialEq, Eq)]
pub enum Said {
    /// A command is complete; its tag.
    Complete(String),
    /// It waits for the next command; its state, `I` when it is outside of a transaction.
    Ready(u8),
}

/// Follows what the server says on one connection.
#[derive(Default)]
pub struct ServerSide {
    rest: Vec<u8>,
}

impl ServerSide {
    /// Takes in what was said; answers what matters of it.
    pub fn hear(&mut self, bytes: &[u8]) -> Vec<Said> {
        self.rest.extend_from_slice(bytes);
        let mut said = Vec::new();
        while let Some((body, end)) = frame(&self.rest, 1) {
            match self.rest[0] {
                b'C' => {
                    said.push(Said::Complete(String::from_utf8_lossy(body).trim_end_matches('\0').into()))
                }
                b'Z' => said.push(Said::Ready(body[0])),
                _ => {}
            }
            self.rest.drain(..end);
        }
        said
    }
}

/// The answers that are seen while that to a commit is waited for.
pub struct AnswersSeen {
    commit: Commit,
    committed: bool,
}

impl AnswersSeen {
    /// None so far.
    pub fn to(commit: Commit) -> Self {
        Self { commit, committed: false }
    }

    /// Whether it was committed, as soon as that is known.
    pub fn see(&mut self, said: &[Said]) -> Option<bool> {
        for said in said {
            match (said, self.commit) {
                (Said::Complete(tag), Commit::Explicit) if tag == "COMMIT" => self.committed = true,
                (Said::Complete(tag), Commit::Explicit) if tag == "ROLLBACK" => return Some(false),
                (Said::Complete(_), Commit::Implicit) => self.committed = true,
                (Said::Ready(b'I'), _) if self.committed => return Some(true),
                (Said::Ready(b'I'), Commit::Implicit) => return Some(false),
                _ => {}
            }
        }
        None
    }
}

/// The body of the first message and where it ends, once all of it is there. Its length follows `skipped` bytes and
/// counts itself.
fn frame(bytes: &[u8], skipped: usize) -> Option<(&[u8], usize)> {
    let len = bytes.get(skipped..skipped + 4)?.try_into().map(u32::from_be_bytes).expect("four bytes");
    let end = skipped + usize::try_from(len).expect("it fits");
    Some((bytes.get(skipped + 4..end)?, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: &str, texts: &[&str]) -> Vec<u8> {
        let body: Vec<u8> = texts.iter().flat_map(|text| [text.as_bytes(), b"\0"].concat()).collect();
        let len = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
        [kind.as_bytes(), &len, &body].concat()
    }

    fn connected() -> ClientSide {
        let mut client = ClientSide::default();
        assert_eq!(client.hear(&message("", &["user", "somebody"]), None), None);
        client
    }

    #[test]
    fn a_commit_is_known_by_what_was_executed_before_it_however_the_bytes_arrive() {
        let mut client = connected();
        let said = [
            message("P", &["s1", "DELETE FROM jobs"]),
            message("Q", &["BEGIN; SET LOCAL x = y"]),
            message("B", &["", "s1"]),
            message("E", &[""]),
            message("S", &[]),
            message("Q", &["COMMIT"]),
        ]
        .concat();
        let heard: Vec<Commit> =
            said.iter().filter_map(|byte| client.hear(&[*byte], Some("FROM jobs"))).collect();
        assert_eq!(heard, [Commit::Explicit]);
        assert_eq!(client.hear(&said, Some("FROM queues")), None);
    }

    #[test]
    fn a_single_statement_commits_itself_and_one_that_is_only_prepared_does_not() {
        let mut client = connected();
        let prepare = [message("P", &["s1", "INSERT INTO jobs"]), message("S", &[])].concat();
        assert_eq!(client.hear(&prepare, Some("jobs")), None);
        let run = [message("B", &["", "s1"]), message("E", &[""]), message("S", &[])].concat();
        assert_eq!(client.hear(&run, Some("jobs")), Some(Commit::Implicit));
    }

    #[test]
    fn an_answer_to_a_commit_is_complete_when_the_server_is_ready() {
        let mut server = ServerSide::default();
        let ready = [b"Z".as_slice(), &5_u32.to_be_bytes(), b"I"].concat();
        let said = [message("C", &["DELETE 1"]), message("C", &["COMMIT"]), ready.clone()].concat();
        let mut seen = AnswersSeen::to(Commit::Explicit);
        let (first, last) = said.split_at(said.len() - 1);
        assert_eq!(seen.see(&server.hear(first)), None);
        assert_eq!(seen.see(&server.hear(last)), Some(true));
        let rolled_back = server.hear(&[message("C", &["ROLLBACK"]), ready].concat());
        assert_eq!(AnswersSeen::to(Commit::Explicit).see(&rolled_back), Some(false));
    }
}
