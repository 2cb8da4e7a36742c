//! A few connections that read beside the writer.
//!
//! Every read is one snapshot of committed data: a job that moves from one table to another meanwhile is seen exactly
//! once.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use tickwheel_core::ports::StoreResult;
use tokio::sync::Semaphore;

use super::connection::open_reader;
use super::fault::Verb;
use crate::error::aborted;

/// So many reads go on at once; others wait for their turn.
const READERS: usize = 4;

/// The reading connections.
pub(super) struct Readers {
    turns: Arc<Semaphore>,
    idle: Arc<Mutex<Vec<Connection>>>,
}

impl Readers {
    /// Opens them. The file must have been opened for writing before.
    pub fn open(path: &Path) -> Verb<Self> {
        let idle = (0..READERS).map(|_| open_reader(path)).collect::<Verb<Vec<_>>>()?;
        Ok(Self { turns: Arc::new(Semaphore::new(READERS)), idle: Arc::new(Mutex::new(idle)) })
    }

    /// Runs `work` on a snapshot.
    pub async fn read<T, W>(&self, work: W) -> StoreResult<T>
    where
        T: Send + 'static,
        W: FnOnce(&Connection) -> Verb<T> + Send + 'static,
    {
        let turn = self.turns.clone().acquire_owned().await.expect("the semaphore is never closed");
        let idle = self.idle.clone();
        let reading = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            let borrowed = BorrowedConnection::take(idle);
            let snapshot = borrowed.connection().unchecked_transaction()?;
            work(&snapshot)
        });
        Ok(reading.await.map_err(aborted)??)
    }
}

/// A connection that goes back whatever happens.
struct BorrowedConnection {
    connection: Option<Connection>,
    home: Arc<Mutex<Vec<Connection>>>,
}

impl BorrowedConnection {
    fn take(home: Arc<Mutex<Vec<Connection>>>) -> Self {
        let connection = home.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Self { connection, home }
    }

    fn connection(&self) -> &Connection {
        self.connection.as_ref().expect("there are as many connections as turns")
    }
}

impl Drop for BorrowedConnection {
    fn drop(&mut self) {
        self.home.lock().unwrap_or_else(PoisonError::into_inner).extend(self.connection.take());
    }
}
