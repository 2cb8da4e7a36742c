//! Opens the configured store. The embedded one belongs to one process: whoever holds the lock of its directory.

use std::fs::{DirBuilder, File, TryLockError};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tickwheel_core::ports::Store;
use tickwheel_store::postgres::{PostgresOptions, PostgresStore};
use tickwheel_store::sqlite::SqliteStore;

use crate::config::{self, StoreUrl};

/// No statement may be under way for longer: the engine relies on it when an answer was lost.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(10);

/// An open store and what has to be held while it is.
pub struct OpenStore {
    /// The store.
    pub store: Arc<dyn Store>,
    _lock: Option<File>,
}

/// Opens the store, creating it if need be.
pub async fn open_store(settings: &config::Store) -> anyhow::Result<OpenStore> {
    match &settings.url {
        StoreUrl::Sqlite => {
            let directory = settings.data_dir.clone();
            tokio::task::spawn_blocking(move || open_embedded(&directory)).await?
        }
        StoreUrl::Postgres(url) => {
            let options = PostgresOptions {
                pool_size: settings.pool_size,
                statement_timeout: STATEMENT_TIMEOUT,
                ..PostgresOptions::default()
            };
            let store =
                PostgresStore::connect(url, options).await.context("cannot open the PostgreSQL store")?;
            Ok(OpenStore { store: Arc::new(store), _lock: None })
        }
    }
}

fn open_embedded(directory: &Path) -> anyhow::Result<OpenStore> {
    // What is inside (payloads, the installation's secret) is nobody else's business.
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .with_context(|| format!("cannot create the data directory {}", directory.display()))?;
    let lock = lock(directory)?;
    let path = directory.join("tickwheel.db");
    let store = SqliteStore::open(&path).with_context(|| format!("cannot open {}", path.display()))?;
    Ok(OpenStore { store: Arc::new(store), _lock: Some(lock) })
}

/// The operating system lets go of the lock when the process ends, however it ends.
fn lock(directory: &Path) -> anyhow::Result<File> {
    let path = directory.join("tickwheel.lock");
    let file = File::create(&path).with_context(|| format!("cannot create {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            bail!("another server is using the data directory {}", directory.display())
        }
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("cannot lock {}", path.display()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_data_directory_belongs_to_one_server_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let settings =
            config::Store { data_dir: directory.path().join("deep/inside"), ..config::Store::default() };
        let first = open_store(&settings).await.unwrap();
        let second = open_store(&settings).await.err().expect("the directory is taken");
        assert!(second.to_string().contains("another server is using"), "{second}");
        drop(first);
        open_store(&settings).await.unwrap();
    }
}
