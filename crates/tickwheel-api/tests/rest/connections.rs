//! Real connections: what the listener does before and after a request.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::json;
use tickwheel_api::serve;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::server::Server;

type Listening = (SocketAddr, oneshot::Sender<()>, JoinHandle<std::io::Result<()>>);

async fn listen(server: &Server) -> Listening {
    listen_for(server, 100).await
}

async fn listen_for(server: &Server, connections_max: usize) -> Listening {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("a bound address");
    let (stop, stopped) = oneshot::channel::<()>();
    let shutdown = async move {
        let _ = stopped.await;
    };
    (address, stop, tokio::spawn(serve(listener, server.router.clone(), connections_max, shutdown)))
}

async fn read_all(mut stream: TcpStream) -> String {
    let mut text = String::new();
    let read = tokio::time::timeout(Duration::from_secs(30), stream.read_to_string(&mut text));
    read.await.expect("the server closes the connection").expect("text");
    text
}

#[tokio::test]
async fn a_request_under_way_is_answered_after_the_shutdown_began_and_idle_connections_are_closed() {
    let server = Server::start();
    let id = server.submit(json!({"type": "t"})).await;
    let token = server.claim(&id).await;
    let (address, stop, served) = listen(&server).await;

    let idle = TcpStream::connect(address).await.unwrap();
    let mut busy = TcpStream::connect(address).await.unwrap();
    let request = format!("GET /api/v1/jobs/{id}?wait=30s HTTP/1.1\r\nhost: localhost\r\n\r\n");
    busy.write_all(request.as_bytes()).await.unwrap();
    server.waiting.notified().await;

    stop.send(()).unwrap();
    assert_eq!(read_all(idle).await, "");
    server.call("POST", &format!("/api/v1/attempts/{token}/complete")).await.ok(204);
    let answer = read_all(busy).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.contains(r#""status":"completed""#), "{answer}");
    served.await.unwrap().unwrap();
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn what_is_not_http_is_answered_with_400_and_closed() {
    let server = Server::start();
    let (address, _stop, _served) = listen(&server).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"\x16\x03\x01 hello\r\n\r\n").await.unwrap();
    assert!(read_all(stream).await.starts_with("HTTP/1.1 400"));
}

#[tokio::test]
async fn an_oversized_body_is_refused_before_it_is_sent() {
    let server = Server::start();
    let (address, _stop, _served) = listen(&server).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = "POST /api/v1/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 999999999\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let answer = read_all(stream).await;
    assert!(answer.starts_with("HTTP/1.1 413") && answer.contains("body_too_large"), "{answer}");
}

/// Sends everything before it reads anything, as simple clients do.
async fn send_then_read(address: SocketAddr, head: &str, body: &[u8]) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let head = format!("{head} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n", body.len());
    stream.write_all(&[head.as_bytes(), b"content-type: application/json\r\n\r\n", body].concat()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_sends_a_refused_body_in_one_go_learns_why_it_was_refused() {
    let server = Server::start();
    let (address, _stop, _served) = listen(&server).await;
    for round in 0..50 {
        for (head, bytes, status) in [
            ("POST /api/v1/jobs", (1 << 20) + 1, "413"),
            ("POST /api/v1/jobs", 4 << 20, "413"),
            ("POST /api/v1/jobs/7/cancel", 4 << 20, "400"),
            ("POST /nowhere", 4 << 20, "404"),
            ("PATCH /api/v1/queues/mail", 4 << 20, "405"),
        ] {
            let answer = send_then_read(address, head, &vec![b' '; bytes]).await;
            let answer = answer.unwrap_or_else(|error| panic!("round {round}, {head}, {bytes}: {error}"));
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{head}, {bytes}: {answer}");
            assert!(answer.contains("\r\nconnection: close\r\n"), "{head}, {bytes}: {answer}");
            assert!(answer.ends_with('}'), "{head}, {bytes}: {answer}");
        }
    }
}

#[tokio::test]
async fn a_new_connection_takes_the_place_of_the_one_that_was_silent_for_longest() {
    let server = Server::start();
    let (address, _stop, _served) = listen_for(&server, 2).await;
    let oldest = TcpStream::connect(address).await.unwrap();
    let mut used = TcpStream::connect(address).await.unwrap();
    let request = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let mut answer = [0; 1024];
    // sleep: silence is measured in milliseconds
    tokio::time::sleep(Duration::from_millis(5)).await;
    used.write_all(request).await.unwrap();
    assert!(used.read(&mut answer).await.unwrap() > 0);

    let mut new = TcpStream::connect(address).await.unwrap();
    new.write_all(request).await.unwrap();
    assert!(new.read(&mut answer).await.unwrap() > 0);
    assert!(answer.starts_with(b"HTTP/1.1 200"));
    assert_eq!(read_all(oldest).await, "");
    used.write_all(request).await.unwrap();
    assert!(used.read(&mut answer).await.unwrap() > 0, "who spoke last stays");
}

#[tokio::test]
async fn where_everybody_is_being_answered_a_new_client_is_refused_at_once() {
    let server = Server::start();
    let id = server.submit(json!({"type": "t"})).await;
    let (address, _stop, _served) = listen_for(&server, 1).await;
    let mut busy = TcpStream::connect(address).await.unwrap();
    let request = format!("GET /api/v1/jobs/{id}?wait=30s HTTP/1.1\r\nhost: localhost\r\n\r\n");
    busy.write_all(request.as_bytes()).await.unwrap();
    server.waiting.notified().await;

    let mut refused = TcpStream::connect(address).await.unwrap();
    refused.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let answer = read_all(refused).await;
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("\r\nretry-after: 1\r\n"), "{answer}");
    assert!(answer.contains("\r\nconnection: close\r\n") && answer.contains("overloaded"), "{answer}");
}
