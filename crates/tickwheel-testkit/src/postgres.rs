//! A database of one's own on a real PostgreSQL server.
//!
//! Deliberately not here: starting the server. Whoever runs the tests does that and says where it is.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use tokio_postgres::NoTls;
use url::Url;

/// The environment variable with the address of a superuser on a private server that tests may fill with databases.
pub const SERVER_VARIABLE: &str = "TICKWHEEL_TEST_POSTGRES";

/// A fresh, empty database; one a test, so that tests do not see each other.
///
/// Dropping the handle drops the database, as far as that can still be done: what a crash leaves behind goes away with
/// the private server.
#[derive(Debug)]
pub struct TestDatabase {
    server: Url,
    name: String,
}

impl TestDatabase {
    /// Creates a database with a name nobody else has.
    ///
    /// # Panics
    /// If there is no server to create it on: a test that needs one cannot go on.
    pub async fn create() -> Self {
        let database = Self { server: server_url(), name: unique_name() };
        let create = format!("CREATE DATABASE {}", database.name);
        execute(&database.server, &create).await.expect("the test server creates a database");
        database
    }

    /// Its address.
    pub fn url(&self) -> String {
        let mut url = self.server.clone();
        url.set_path(&self.name);
        url.into()
    }

    /// Its name on the server.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Does something to it behind everybody's back.
    ///
    /// # Panics
    /// If that cannot be done.
    pub async fn execute(&self, statement: &str) {
        let url = Url::parse(&self.url()).expect("made of an address");
        execute(&url, statement).await.expect("the test server does it");
    }

    /// The address of the server's own database, for what has to be done from outside (ending connections and the
    /// like).
    pub fn server_url(&self) -> &str {
        self.server.as_str()
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let server = self.server.clone();
        let drop = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        // On a thread of its own: a runtime cannot block on another one.
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(execute(&server, &drop)).map_err(std::io::Error::other)
        });
        if let Ok(Err(error)) = dropping.join() {
            eprintln!("database {} is left behind: {error}", self.name);
        }
    }
}

fn server_url() -> Url {
    let text = std::env::var(SERVER_VARIABLE).unwrap_or_else(|_| {
        panic!("{SERVER_VARIABLE} is not set: run tests through `make test` or scripts/with-servers.sh")
    });
    Url::parse(&text).unwrap_or_else(|error| panic!("{SERVER_VARIABLE} is no address: {error}"))
}

fn unique_name() -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    // Process numbers come round again, and so do clocks; both together do not.
    let started = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    format!("tickwheel_test_{}_{started:x}_{number}", std::process::id())
}

async fn execute(server: &Url, statement: &str) -> Result<(), tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(server.as_str(), NoTls).await?;
    let serving = tokio::spawn(connection);
    let done = client.batch_execute(statement).await;
    drop(client);
    // The connection ends with its client; a clean goodbye keeps the server's log quiet.
    let _ = serving.await;
    done
}
