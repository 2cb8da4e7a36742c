//! Opens the configured store. The embedded one belongs to one process: whoever holds the lock of its directory.

use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
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
    _locks: Option<[File; 2]>,
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
            Ok(OpenStore { store: Arc::new(store), _locks: None })
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
    let locks = lock(directory)?;
    let path = directory.join("tickwheel.db");
    let store = SqliteStore::open(&path).with_context(|| format!("cannot open {}", path.display()))?;
    Ok(OpenStore { store: Arc::new(store), _locks: Some(locks) })
}

/// The operating system lets go of the locks when the process ends, however it ends.
///
/// The directory itself is what counts: a file in it can be deleted while it is locked, and a new one would be free.
/// The lock file is for servers of earlier versions, and for file systems that lock no directories.
fn lock(directory: &Path) -> anyhow::Result<[File; 2]> {
    let path = directory.join("tickwheel.lock");
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path);
    let file = file.with_context(|| format!("cannot create {}", path.display()))?;
    // Files of earlier versions may be open to others.
    let _ = file.set_permissions(Permissions::from_mode(0o600));
    let taken = || anyhow!("another server is using the data directory {}", directory.display());
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(taken()),
        Err(TryLockError::Error(error)) => {
            return Err(error).with_context(|| format!("cannot lock {}", path.display()));
        }
    }
    let whole = File::open(directory).with_context(|| format!("cannot open {}", directory.display()))?;
    match whole.try_lock() {
        Err(TryLockError::WouldBlock) => return Err(taken()),
        Err(TryLockError::Error(error)) => {
            tracing::warn!(%error, "the data directory cannot be locked; do not delete its lock file");
        }
        Ok(()) => {}
    }
    Ok([file, whole])
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
        std::fs::remove_file(settings.data_dir.join("tickwheel.lock")).unwrap();
        let third = open_store(&settings).await.err().expect("the directory is still taken");
        assert!(third.to_string().contains("another server is using"), "{third}");
        drop(first);
        open_store(&settings).await.unwrap();
    }
}
