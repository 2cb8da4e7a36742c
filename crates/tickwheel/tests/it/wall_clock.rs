//! A server's idea of the time of day, to be set while it runs. What it waits, it waits for real.

use std::path::PathBuf;

use tempfile::TempDir;

/// A clock on the wall of one server. It goes like everybody's, some seconds ahead or behind.
pub struct WallClock {
    directory: TempDir,
}

impl WallClock {
    /// Right, for now.
    pub fn right() -> Self {
        let clock = Self { directory: TempDir::new().unwrap() };
        clock.set(0);
        clock
    }

    /// Puts it so many seconds ahead of everybody else's, or (below zero) behind.
    pub fn set(&self, seconds: i64) {
        // Replaced as a whole: the server reads it whenever it wants to know the time.
        let draft = self.directory.path().join("draft");
        std::fs::write(&draft, format!("{seconds:+}\n")).unwrap();
        std::fs::rename(draft, self.file()).unwrap();
    }

    /// Where the setting is read.
    pub fn file(&self) -> PathBuf {
        self.directory.path().join("offset")
    }
}
