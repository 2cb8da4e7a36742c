//! As much of HTTP/1.1 as both sides need here: messages with a `content-length` over connections that stay open.

use anyhow::{Context as _, bail, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const READ_LEN: usize = 64 * 1024;

/// A connection, and what was read from it and not taken yet.
pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    taken: usize,
}

/// A request or an answer.
pub struct Message<'a> {
    /// Everything before the empty line.
    pub head: &'a [u8],
    /// Everything after it.
    pub body: &'a [u8],
}

impl Connection {
    /// Small messages are not held back to be sent together.
    pub fn new(stream: TcpStream) -> anyhow::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::with_capacity(READ_LEN), taken: 0 })
    }

    /// Sends bytes.
    pub async fn write(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        Ok(self.stream.write_all(bytes).await?)
    }

    /// The next message; `None` when the other side has closed.
    pub async fn read(&mut self) -> anyhow::Result<Option<Message<'_>>> {
        self.buffer.drain(..self.taken);
        self.taken = 0;
        let (head_len, body_len) = loop {
            if let Some(lengths) = lengths(&self.buffer)? {
                break lengths;
            }
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                ensure!(self.buffer.is_empty(), "the connection was closed in the middle of a message");
                return Ok(None);
            }
        };
        self.taken = head_len + body_len;
        let (head, body) = self.buffer[..self.taken].split_at(head_len);
        Ok(Some(Message { head, body }))
    }

    /// Sends a request and reads its answer, which has to be a success.
    pub async fn exchange(&mut self, request: &[u8]) -> anyhow::Result<&[u8]> {
        self.write(request).await?;
        let answer = self.read().await?.context("the server closed the connection")?;
        if !answer.head.starts_with(b"HTTP/1.1 2") {
            let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
            bail!("the server answered {} {}", text(answer.head), text(answer.body));
        }
        Ok(answer.body)
    }
}

/// A request, ready to be sent any number of times.
pub fn request(method: &str, path: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// How long the head and the body of the first message are, if all of it is there.
fn lengths(buffer: &[u8]) -> anyhow::Result<Option<(usize, usize)>> {
    let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") else {
        return Ok(None);
    };
    let head_len = end + 4;
    let body_len = content_length(&buffer[..head_len])?;
    Ok((buffer.len() >= head_len + body_len).then_some((head_len, body_len)))
}

fn content_length(head: &[u8]) -> anyhow::Result<usize> {
    const NAME: &[u8] = b"content-length:";
    let line = head
        .split(|byte| *byte == b'\n')
        .find(|line| line.len() > NAME.len() && line[..NAME.len()].eq_ignore_ascii_case(NAME));
    let Some(line) = line else { return Ok(0) };
    Ok(std::str::from_utf8(&line[NAME.len()..])?.trim().parse()?)
}
