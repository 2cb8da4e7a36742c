//! Which addresses can be reached, whatever they are called.

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use tickwheel_core::ports::Executor;
use tickwheel_executor::executor::HttpExecutor;
use tickwheel_executor::outbound::{AddressGuard, OutboundClient, OutboundOptions, Resolver};

use crate::fixture::{attempt, client, completed, failure_at, options};
use crate::server::{Reply, TestServer};

/// Answers each question with the next of its answers.
struct ScriptedResolver(Mutex<VecDeque<Vec<IpAddr>>>);

impl ScriptedResolver {
    fn new(answers: &[&[&str]]) -> Arc<Self> {
        let parse = |ips: &&[&str]| ips.iter().map(|ip| ip.parse().unwrap()).collect();
        Arc::new(Self(Mutex::new(answers.iter().map(parse).collect())))
    }

    fn answers_left(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

#[async_trait]
impl Resolver for ScriptedResolver {
    async fn resolve(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        self.0.lock().unwrap().pop_front().ok_or_else(|| io::Error::other("no answer left"))
    }
}

fn executor_resolving_by(resolver: Arc<ScriptedResolver>, guard: AddressGuard) -> HttpExecutor {
    let outbound = OutboundOptions { resolver, ..OutboundOptions::guarded_by(guard) };
    HttpExecutor::new(options(OutboundClient::new(outbound)))
}

#[tokio::test]
async fn this_machine_is_out_of_reach_in_every_spelling() {
    let server = TestServer::always(Reply::ok("")).await;
    let port = server.address.port();
    let executor = HttpExecutor::new(options(client(AddressGuard::public_only())));
    for host in [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0x7f.0.0.0x1",
        "0177.0.0.1",
        "017700000001",
        "0.0.0.0",
        "0",
        "localhost",
        "LOCALHOST",
        "127.0.0.1.",
        "%31%32%37.0.0.1",
        "１２７.0.0.1",
        "[::1]",
        "[::]",
        "[::127.0.0.1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "user:password@127.0.0.1",
        "example.org:80@127.0.0.1",
        "169.254.169.254",
        "10.0.0.1",
    ] {
        let (failure, retryable, _) = failure_at(&executor, format!("http://{host}:{port}/")).await;
        assert_eq!((failure.code.as_str(), retryable), ("target_forbidden", false), "{host}");
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_refusal_does_not_tell_what_a_name_resolves_to() {
    let resolver = ScriptedResolver::new(&[&["10.1.2.3"]]);
    let executor = executor_resolving_by(resolver, AddressGuard::public_only());
    let (failure, ..) = failure_at(&executor, "http://db.internal/").await;
    assert_eq!(failure.code, "target_forbidden");
    assert!(failure.message.contains("db.internal") && !failure.message.contains("10.1.2.3"));
}

#[tokio::test]
async fn an_exception_opens_exactly_one_door() {
    let open = TestServer::always(Reply::ok("")).await;
    let shut = TestServer::always(Reply::ok("")).await;
    let guard = AddressGuard::public_only().with_exception(open.address);
    let executor = HttpExecutor::new(options(client(guard)));
    assert_eq!(executor.run(&attempt(open.url("/"))).await, completed(None));
    assert_eq!(failure_at(&executor, shut.url("/")).await.0.code, "target_forbidden");
    assert_eq!(shut.connections(), 0);
}

/// The name leads to an allowed address when it is checked and to a private one ever after.
#[tokio::test]
async fn a_name_that_changes_its_address_gains_nothing() {
    let allowed = TestServer::always(Reply::new("200 OK", &["connection: close"], "")).await;
    let port = allowed.address.port();
    let private = TestServer::on(([127, 0, 0, 2], port).into(), vec![Reply::ok("")]).await;
    let resolver = ScriptedResolver::new(&[&["127.0.0.1"], &["127.0.0.2"], &["127.0.0.2"]]);
    let guard = AddressGuard::public_only().with_exception(allowed.address);
    let executor = executor_resolving_by(Arc::clone(&resolver), guard);
    let url = format!("http://rebinding.example:{port}/");

    assert_eq!(executor.run(&attempt(url.clone())).await, completed(None));
    assert_eq!(resolver.answers_left(), 2, "resolved once, and connected to what was found");
    assert_eq!(failure_at(&executor, url).await.0.code, "target_forbidden");
    assert_eq!((allowed.connections(), private.connections()), (1, 0));
}

#[tokio::test]
async fn of_a_names_addresses_only_the_allowed_ones_are_used() {
    let allowed = TestServer::always(Reply::ok("")).await;
    let port = allowed.address.port();
    let private = TestServer::on(([127, 0, 0, 2], port).into(), vec![Reply::ok("")]).await;
    let resolver = ScriptedResolver::new(&[&["127.0.0.2", "10.0.0.1", "127.0.0.1", "::1"]]);
    let guard = AddressGuard::public_only().with_exception(allowed.address);
    let executor = executor_resolving_by(resolver, guard);

    assert_eq!(executor.run(&attempt(format!("http://mixed.example:{port}/"))).await, completed(None));
    assert_eq!((allowed.connections(), private.connections()), (1, 0));
}

#[tokio::test]
async fn an_address_that_refuses_gives_way_to_the_next() {
    let server = TestServer::always(Reply::ok("")).await;
    let resolver = ScriptedResolver::new(&[&["127.0.0.3", "127.0.0.1"]]);
    let executor = executor_resolving_by(resolver, AddressGuard::allow_private());
    let url = format!("http://two.example:{}/", server.address.port());
    assert_eq!(executor.run(&attempt(url)).await, completed(None));
}

#[tokio::test]
async fn a_name_that_leads_nowhere_is_worth_another_try() {
    // First a name without addresses, then a resolver that fails.
    let executor = executor_resolving_by(ScriptedResolver::new(&[&[]]), AddressGuard::public_only());
    for _ in 0..2 {
        let (failure, retryable, _) = failure_at(&executor, "http://nowhere.example/").await;
        assert_eq!((failure.code.as_str(), retryable), ("connect_failed", true));
    }
}
