//! The lines of an answer that goes on, such as a log that is followed.

use std::time::Duration;

use bytes::BytesMut;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;

/// The server sends an empty line more often than this, so that one that is gone is noticed.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// No line is longer.
const LINE_BYTES_MAX: usize = 4 << 20;

/// See the module.
#[derive(Debug)]
pub struct Lines {
    body: Incoming,
    /// What was read and is not given yet.
    read: BytesMut,
    /// How much of it has no end of a line.
    searched: usize,
}

impl Lines {
    pub(crate) fn new(body: Incoming) -> Self {
        Self { body, read: BytesMut::new(), searched: 0 }
    }

    /// The next line that is not empty. `None`: there is none, because it was the last or because the server is gone.
    pub async fn next(&mut self) -> Option<String> {
        loop {
            let end = self.read[self.searched..].iter().position(|byte| *byte == b'\n');
            if let Some(end) = end {
                let line = self.read.split_to(self.searched + end + 1);
                self.searched = 0;
                match std::str::from_utf8(&line).ok()?.trim_end() {
                    "" => continue,
                    line => return Some(line.to_owned()),
                }
            }
            self.searched = self.read.len();
            if self.read.len() > LINE_BYTES_MAX {
                return None;
            }
            let frame = tokio::time::timeout(SILENCE_MAX, self.body.frame()).await.ok()??.ok()?;
            if let Ok(data) = frame.into_data() {
                self.read.extend_from_slice(&data);
            }
        }
    }
}
