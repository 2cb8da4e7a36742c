//! A server that answers what it was told to and remembers what it was asked. For testing the client side alone.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A request as it arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Method and path with query.
    pub line: String,
    /// Headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

/// The server. It stops with the test's process.
pub struct FakeServer {
    /// Its address.
    pub url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl FakeServer {
    /// Starts one that gives these answers (status and body) in turn, then 500. The status 0 hangs up.
    pub fn answering(answers: &[(u16, &str)]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let answers: VecDeque<_> =
            answers.iter().map(|(status, body)| (*status, (*body).to_owned())).collect();
        let (answers, seen) = (Arc::new(Mutex::new(answers)), Arc::clone(&asked));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (answers, seen) = (Arc::clone(&answers), Arc::clone(&seen));
                std::thread::spawn(move || serve(stream.unwrap(), &answers, &seen));
            }
        });
        Self { url, asked }
    }

    /// What it was asked so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

fn serve(stream: TcpStream, answers: &Mutex<VecDeque<(u16, String)>>, seen: &Mutex<Vec<Asked>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    while let Some(asked) = read_request(&mut reader) {
        seen.lock().unwrap().push(asked);
        let (status, body) = answers.lock().unwrap().pop_front().unwrap_or((500, "no answer left".into()));
        if status == 0 {
            return;
        }
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
        );
        if stream.write_all(format!("{head}{body}").as_bytes()).is_err() {
            return;
        }
    }
}

fn read_request(reader: &mut impl BufRead) -> Option<Asked> {
    let line = read_line(reader)?;
    let mut headers = Vec::new();
    while let Some(header) = read_line(reader).filter(|header| !header.is_empty()) {
        let (name, value) = header.split_once(':')?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length =
        headers.iter().find(|(name, _)| name == "content-length").map_or(0, |(_, v)| v.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let line = line.strip_suffix(" HTTP/1.1")?.to_owned();
    Some(Asked { line, headers, body: String::from_utf8(body).ok()? })
}

fn read_line(reader: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    match reader.read_line(&mut line) {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(line.trim_end().to_owned()),
    }
}
