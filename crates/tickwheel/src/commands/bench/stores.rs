//! Where to measure: empty stores that are gone afterwards, or one that is kept.

use anyhow::ensure;
use tickwheel_core::ports::JobQuery;

use super::BenchArgs;
use crate::config::{self, StoreUrl};
use crate::failure::CommandError;
use crate::serve::{OpenStore, open_store};

/// One store to measure on.
pub struct BenchStore {
    settings: config::Store,
    kept: bool,
}

impl BenchStore {
    /// Its name in the results.
    pub fn name(&self) -> &'static str {
        if self.settings.url == StoreUrl::Sqlite { "sqlite" } else { "postgres" }
    }

    /// Opens it. Unless it is kept, it has to be empty.
    pub async fn open(&self) -> anyhow::Result<OpenStore> {
        let opened = open_store(&self.settings).await?;
        if !self.kept {
            let found = opened.store.list_jobs(JobQuery { limit: 1, ..JobQuery::default() }).await?;
            ensure!(found.items.is_empty(), "the store holds jobs: measure on an empty one, or with --keep");
        }
        Ok(opened)
    }

    /// The directory to remove when everything is measured.
    pub fn temporary(&self) -> Option<std::path::PathBuf> {
        let temporary = !self.kept && self.settings.url == StoreUrl::Sqlite;
        temporary.then(|| self.settings.data_dir.clone())
    }
}

/// The stores that were asked for.
pub fn asked_for(args: &BenchArgs) -> Result<Vec<BenchStore>, CommandError> {
    let store = |settings| BenchStore { settings, kept: args.keep };
    let embedded = || store(config::Store { data_dir: data_dir(args), ..config::Store::default() });
    let postgres =
        |url: String| store(config::Store { url: StoreUrl::Postgres(url), ..config::Store::default() });
    Ok(match args.store.as_deref() {
        Some("sqlite") => vec![embedded()],
        Some(url) if url.starts_with("postgres://") || url.starts_with("postgresql://") => {
            vec![postgres(url.into())]
        }
        Some(other) => {
            return Err(CommandError::BadInput(format!(
                "{other:?} is no store: use `sqlite` or postgres://…"
            )));
        }
        None => {
            let from_env = std::env::var("TICKWHEEL_TEST_POSTGRES").ok();
            std::iter::once(embedded()).chain(from_env.map(postgres)).collect()
        }
    })
}

fn data_dir(args: &BenchArgs) -> std::path::PathBuf {
    if args.keep {
        args.data_dir.clone()
    } else {
        args.data_dir.join(format!("tickwheel-bench-{}", std::process::id()))
    }
}
