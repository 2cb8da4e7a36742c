//! The one connection that belongs to sessions, outside the pool: however busy the API is, a lease is renewed.
//!
//! It also tells others that this process lives. For every session of this process it holds an advisory lock, taken
//! before the session's row is written and released after the row is gone; the server releases it by itself as soon as
//! the connection ends. So a row whose lock is free belongs to a process that is dead or cut off:
//!
//! ```text
//!   open   lock ── insert row ─────────────── delete row ── unlock   end
//!                      │ connection lost: the server unlocks │
//!                      └── reconnect ── lock again ── go on ─┘
//! ```
//! The lock is a hint, never authority: whether a session has ended, its row says. A process that was found dead while
//! it reconnected learns it by the next renewal.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tickwheel_core::SessionId;
use tickwheel_core::failure_streak::FailureStreak;
use tickwheel_core::ports::{StoreError, StoreResult};
use tickwheel_core::retry::Jitter;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Config, Error, NoTls};
use tracing::{info, warn};
use uuid::Uuid;

use super::connect::CONNECT_TIMEOUT;
use super::error::{in_words, no_connection, not_done};
use super::locks::session_key;

/// How long a caller waits for a lost connection to come back.
const RECONNECT_WAIT: Duration = Duration::from_secs(3);
/// One that ends so soon is no reason to make the next at once.
const SHORT_LIVED: Duration = Duration::from_secs(1);

// Never waited for: the only other holder of a session's lock is an earlier connection of the same process that the
// server has not given up yet, and as long as it is there it says the same.
const LOCK: &str = concat!("SELECT pg_try_advisory_lock(", session_key!("$1::uuid"), ")");
const UNLOCK: &str = concat!("SELECT pg_advisory_unlock(", session_key!("$1::uuid"), ")");

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[LOCK, UNLOCK];

/// Keeps the connection and the locks of this process's sessions.
#[derive(Debug)]
pub(super) struct SessionConnection {
    shared: Arc<Shared>,
    keeper: JoinHandle<()>,
}

/// A connection and its number; each has a higher one than the one before.
#[derive(Debug)]
pub(super) struct Connection {
    number: u64,
    pub client: Client,
}

#[derive(Debug)]
struct Shared {
    connection: watch::Sender<Option<Arc<Connection>>>,
    /// The sessions of this process, and the number of the connection on which each is locked (0: on none).
    held: Mutex<HashMap<SessionId, u64>>,
}

impl SessionConnection {
    /// Connects, and keeps the connection up from now on.
    pub async fn open(config: Config) -> StoreResult<Self> {
        let shared = Arc::new(Shared { connection: watch::Sender::new(None), held: Mutex::default() });
        let first = shared.establish(&config, 1).await.map_err(no_connection)?;
        let keeper = tokio::spawn(Arc::clone(&shared).keep(config, first));
        Ok(Self { shared, keeper })
    }

    /// The connection; if it was just lost, waits a little for the next one.
    pub async fn connection(&self) -> StoreResult<Arc<Connection>> {
        let mut connection = self.shared.connection.subscribe();
        let found = timeout(RECONNECT_WAIT, connection.wait_for(Option::is_some)).await;
        match found {
            Ok(Ok(connection)) => connection.clone().ok_or_else(|| no_connection("it was just lost")),
            Ok(Err(_)) | Err(_) => Err(no_connection("the one for sessions is lost")),
        }
    }

    /// Takes the lock for a session that is about to be opened here.
    pub async fn hold(&self, connection: &Connection, id: SessionId) -> StoreResult<()> {
        // Noted first: if the connection is lost before the row is written, the next one holds the lock all the same.
        if self.shared.held().insert(id, 0).is_some() {
            return Err(StoreError::Aborted(format!("session {id} is already open")));
        }
        match self.shared.lock(connection, id).await {
            Ok(true) => Ok(()),
            Ok(false) => {
                self.shared.held().remove(&id);
                Err(StoreError::Aborted(format!("session {id} belongs to another process")))
            }
            Err(cause) => {
                self.shared.held().remove(&id);
                Err(not_done(cause))
            }
        }
    }

    /// Makes sure that the lock of a session that was opened here is held on this connection.
    pub async fn hold_again(&self, connection: &Connection, id: SessionId) -> StoreResult<()> {
        let locked_on = self.shared.held().get(&id).copied();
        if locked_on.is_some_and(|number| number != connection.number) {
            self.shared.lock(connection, id).await.map_err(not_done)?;
        }
        Ok(())
    }

    /// Releases the lock of a session whose row is gone; nothing to do for a session of another process.
    pub async fn release(&self, connection: &Connection, id: SessionId) {
        let locked_on = self.shared.held().remove(&id);
        if locked_on == Some(connection.number)
            && let Err(cause) = connection.client.query_typed(UNLOCK, &[(&id.as_uuid(), Type::UUID)]).await
        {
            // The lock of a session without a row means nothing to anybody.
            warn!(session = %id, cause = in_words(&cause), "the lock of an ended session was not released");
        }
    }

    /// The sessions of this process.
    pub fn held(&self) -> Vec<Uuid> {
        self.shared.held().keys().map(|id| id.as_uuid()).collect()
    }
}

impl Drop for SessionConnection {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

impl Shared {
    fn held(&self) -> MutexGuard<'_, HashMap<SessionId, u64>> {
        // Every change of the map is a single insertion or removal: a panic elsewhere leaves it whole.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the connection to end and makes the next one, for as long as the store lives.
    async fn keep(self: Arc<Self>, config: Config, first: JoinHandle<String>) {
        let (mut ended, mut streak) = (first, FailureStreak::none());
        for number in 2.. {
            let began = Instant::now();
            // However it ended, there is no connection now.
            let cause = ended.await.unwrap_or_else(|cause| cause.to_string());
            self.connection.send_replace(None);
            if began.elapsed() < SHORT_LIVED {
                sleep(streak.wait(jitter())).await;
            }
            ended = self.establish_at_last(&config, number, cause, &mut streak).await;
        }
    }

    async fn establish_at_last(
        &self,
        config: &Config,
        number: u64,
        lost_by: String,
        streak: &mut FailureStreak,
    ) -> JoinHandle<String> {
        let mut cause = lost_by;
        loop {
            if let Some(repeats) = streak.failed(Instant::now()) {
                warn!(cause, repeats, "the connection for sessions is lost");
            }
            match self.establish(config, number).await {
                Ok(ended) => {
                    if streak.succeeded().is_some() {
                        info!("the connection for sessions is back");
                    }
                    return ended;
                }
                Err(failed) => cause = failed,
            }
            sleep(streak.wait(jitter())).await;
        }
    }

    /// Connects, takes the locks of all sessions, and only then lets the connection be used. The answer ends with the
    /// connection, and says why.
    async fn establish(&self, config: &Config, number: u64) -> Result<JoinHandle<String>, String> {
        let connected = timeout(CONNECT_TIMEOUT, config.connect(NoTls)).await;
        let (client, connection) =
            connected.map_err(|_| "no answer in time".to_owned())?.map_err(|cause| in_words(&cause))?;
        let ended = tokio::spawn(async move {
            connection.await.err().map_or_else(|| "it was closed".to_owned(), |cause| in_words(&cause))
        });
        let connection = Connection { number, client };
        let sessions: Vec<SessionId> = self.held().keys().copied().collect();
        for id in sessions {
            self.lock(&connection, id).await.map_err(|cause| in_words(&cause))?;
        }
        self.connection.send_replace(Some(Arc::new(connection)));
        Ok(ended)
    }

    async fn lock(&self, connection: &Connection, id: SessionId) -> Result<bool, Error> {
        let rows = connection.client.query_typed(LOCK, &[(&id.as_uuid(), Type::UUID)]).await?;
        let locked = match rows.first() {
            Some(row) => row.try_get(0)?,
            None => false,
        };
        if locked {
            self.held().entry(id).and_modify(|number| *number = connection.number);
        }
        Ok(locked)
    }
}

fn jitter() -> Jitter {
    Jitter::from_bits(rand::random())
}
