//! The one thread that writes, and how its commits are shared.
//!
//! ```text
//!  callers ──▶ bounded channel ──▶ BEGIN IMMEDIATE
//!                                    SAVEPOINT, command 1, RELEASE
//!                                    SAVEPOINT, command 2, ROLLBACK TO   (its caller alone gets an error)
//!                                    …
//!                                  COMMIT ──▶ all callers get their answers
//! ```
//! The thread takes whatever is waiting, never waits for more: while one commit is being written, the next batch
//! gathers.
//!
//! Invariants: nobody is answered before the commit that holds their change succeeded; a command that fails leaves no
//! trace and does not touch its neighbours; when the transaction as a whole fails, everybody in it hears "certainly
//! aborted".

use std::thread::JoinHandle;
use std::time::Instant;

use rusqlite::Connection;
use tickwheel_core::failure_streak::FailureStreak;
use tickwheel_core::ports::{StoreError, StoreResult};
use tokio::sync::{mpsc, oneshot};
use tracing::{error, warn};

use super::fault::Verb;
use crate::error::{aborted, unknown};

/// So many commands share a commit at the most.
const BATCH_LEN_MAX: usize = 64;

/// So many commands may wait; whoever comes then waits before the door.
const WAITING_LEN_MAX: usize = 1_024;

/// The way to the writing thread. Dropping it lets the thread finish what was asked, then ends it.
pub(super) struct Writer {
    commands: Option<mpsc::Sender<Box<dyn Command>>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Gives the connection to a thread of its own.
    pub fn start(connection: Connection) -> StoreResult<Self> {
        let (commands, waiting) = mpsc::channel(WAITING_LEN_MAX);
        let thread = std::thread::Builder::new()
            .name("sqlite-writer".into())
            .spawn(move || write_until_closed(connection, waiting))
            .map_err(aborted)?;
        Ok(Self { commands: Some(commands), thread: Some(thread) })
    }

    /// Runs `work` in the next transaction and answers once that is on disk.
    pub async fn write<T, W>(&self, work: W) -> StoreResult<T>
    where
        T: Send + 'static,
        W: FnOnce(&Connection) -> Verb<T> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let request = Request { work: Some(work), result: None, reply };
        let commands = self.commands.as_ref().expect("taken only when dropped");
        commands.send(Box::new(request)).await.map_err(|_| aborted("the writing thread has ended"))?;
        answer.await.unwrap_or_else(|_| Err(unknown("the writing thread ended before it answered")))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.commands.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            error!("the writing thread panicked");
        }
    }
}

/// Something to be done in a transaction and answered after it.
trait Command: Send {
    /// Does it; `false`: undo it.
    fn run(&mut self, connection: &Connection) -> bool;
    /// Answers, knowing what became of the transaction.
    fn answer(self: Box<Self>, transaction: &rusqlite::Result<()>);
}

struct Request<T, W> {
    work: Option<W>,
    result: Option<StoreResult<T>>,
    reply: oneshot::Sender<StoreResult<T>>,
}

impl<T, W> Command for Request<T, W>
where
    T: Send,
    W: FnOnce(&Connection) -> Verb<T> + Send,
{
    fn run(&mut self, connection: &Connection) -> bool {
        let Some(work) = self.work.take() else { return false };
        let result = work(connection).map_err(StoreError::from);
        let succeeded = result.is_ok();
        self.result = Some(result);
        succeeded
    }

    fn answer(self: Box<Self>, transaction: &rusqlite::Result<()>) {
        let result = match (self.result, transaction) {
            // Its own error says more than that of the transaction, and is just as certain.
            (Some(Err(own)), _) => Err(own),
            (Some(Ok(value)), Ok(())) => Ok(value),
            (_, Err(cause)) => Err(aborted(cause)),
            (None, Ok(())) => Err(aborted("it was not run")),
        };
        // Nobody may be waiting any more: what they asked for is done all the same.
        let _ = self.reply.send(result);
    }
}

fn write_until_closed(connection: Connection, waiting: mpsc::Receiver<Box<dyn Command>>) {
    let mut batch = Vec::with_capacity(BATCH_LEN_MAX);
    // Bound after the batch, so that a panic closes the door before it lets go of those inside: whoever hears of the
    // end and asks again is turned away, not taken in and dropped.
    let mut waiting = waiting;
    let mut streak = FailureStreak::none();
    while waiting.blocking_recv_many(&mut batch, BATCH_LEN_MAX) > 0 {
        let commands = batch.len();
        match run_batch(&connection, &mut batch) {
            Ok(()) => drop(streak.succeeded()),
            Err(cause) => {
                if let Some(repeats) = streak.failed(Instant::now()) {
                    warn!(%cause, commands, repeats, "transaction rolled back");
                }
            }
        }
    }
    close(connection);
}

/// Runs the commands and answers them; says what became of their transaction.
fn run_batch(connection: &Connection, batch: &mut Vec<Box<dyn Command>>) -> rusqlite::Result<()> {
    let transaction = run_transaction(connection, batch);
    for command in batch.drain(..) {
        command.answer(&transaction);
    }
    transaction
}

fn run_transaction(connection: &Connection, batch: &mut [Box<dyn Command>]) -> rusqlite::Result<()> {
    let outcome = try_transaction(connection, batch);
    if outcome.is_err() && !connection.is_autocommit() {
        execute(connection, "ROLLBACK")?;
    }
    outcome
}

fn try_transaction(connection: &Connection, batch: &mut [Box<dyn Command>]) -> rusqlite::Result<()> {
    execute(connection, "BEGIN IMMEDIATE")?;
    if let [alone] = batch {
        // Without neighbours, the transaction is savepoint enough.
        return if alone.run(connection) {
            execute(connection, "COMMIT")
        } else {
            execute(connection, "ROLLBACK")
        };
    }
    for command in batch {
        execute(connection, "SAVEPOINT command")?;
        if !command.run(connection) {
            // Fails when SQLite gave up the whole transaction (disk full): then all of the batch is aborted.
            execute(connection, "ROLLBACK TO command")?;
        }
        execute(connection, "RELEASE command")?;
    }
    execute(connection, "COMMIT")
}

fn execute(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([]).map(|_| ())
}

/// Leaves one file behind: what is in the write-ahead log goes into the database.
fn close(connection: Connection) {
    if let Err(cause) = connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)") {
        warn!(%cause, "no checkpoint at the end, the next start will do it");
    }
    if let Err((_, cause)) = connection.close() {
        warn!(%cause, "the database was not closed properly");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, mpsc as std_mpsc};

    use tokio::task::JoinSet;

    use super::*;

    fn connection() -> Connection {
        let connection = Connection::open_in_memory().expect("memory");
        connection.execute_batch("CREATE TABLE t (n INTEGER PRIMARY KEY) STRICT").expect("a table");
        connection
    }

    fn insert(n: i64) -> impl FnOnce(&Connection) -> Verb<()> {
        move |c| {
            c.prepare_cached("INSERT INTO t VALUES (?1)")?.execute([n])?;
            Ok(())
        }
    }

    fn all(c: &Connection) -> Verb<Vec<i64>> {
        let mut statement = c.prepare_cached("SELECT n FROM t ORDER BY n")?;
        Ok(statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?)
    }

    fn request<T, W>(work: W) -> (Box<dyn Command>, oneshot::Receiver<StoreResult<T>>)
    where
        T: Send + 'static,
        W: FnOnce(&Connection) -> Verb<T> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        (Box::new(Request { work: Some(work), result: None, reply }), answer)
    }

    #[test]
    fn a_failing_command_leaves_no_trace_and_does_not_spoil_its_neighbours() {
        let connection = connection();
        let (first, first_answer) = request(insert(1));
        let (failing, failing_answer) = request(|c: &Connection| {
            insert(2)(c)?;
            insert(1)(c)
        });
        let (last, last_answer) = request(insert(3));
        run_batch(&connection, &mut vec![first, failing, last]).expect("committed");
        assert!(first_answer.blocking_recv().expect("answered").is_ok());
        let error = failing_answer.blocking_recv().expect("answered").expect_err("1 is there already");
        assert!(error.is_certainly_aborted(), "{error}");
        assert!(last_answer.blocking_recv().expect("answered").is_ok());
        assert_eq!(all(&connection).expect("readable"), [1, 3]);
    }

    #[test]
    fn a_command_alone_in_its_batch_is_undone_when_it_fails() {
        let connection = connection();
        let (failing, answer) = request(|c: &Connection| {
            insert(1)(c)?;
            insert(1)(c)
        });
        run_batch(&connection, &mut vec![failing]).expect("rolled back in order");
        assert!(answer.blocking_recv().expect("answered").expect_err("twice").is_certainly_aborted());
        assert!(all(&connection).expect("readable").is_empty());
        assert!(connection.is_autocommit(), "no transaction is left open");
    }

    #[test]
    fn when_the_transaction_fails_everybody_in_it_is_aborted_and_the_next_one_works() {
        let connection = connection();
        let (first, first_answer) = request(insert(1));
        // As SQLite itself does when the disk is full.
        let (fatal, fatal_answer) = request(|c: &Connection| {
            c.execute_batch("ROLLBACK")?;
            Err::<(), _>(StoreError::Aborted("disk full".into()).into())
        });
        let (last, last_answer) = request(insert(3));
        run_batch(&connection, &mut vec![first, fatal, last]).expect_err("nothing was kept");
        for answer in [first_answer, fatal_answer, last_answer] {
            let error = answer.blocking_recv().expect("answered").expect_err("nothing was kept");
            assert!(error.is_certainly_aborted(), "{error}");
        }
        let (next, next_answer) = request(insert(4));
        run_batch(&connection, &mut vec![next]).expect("committed");
        assert!(next_answer.blocking_recv().expect("answered").is_ok());
        assert_eq!(all(&connection).expect("readable"), [4]);
    }

    #[tokio::test]
    async fn what_gathers_during_a_commit_shares_the_next_one() {
        let directory = tempfile::TempDir::new().expect("a directory");
        let path = directory.path().join("t.db");
        let connection = Connection::open(&path).expect("a file");
        connection.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (n INTEGER)").expect("a table");
        let writer = Arc::new(Writer::start(connection).expect("a thread"));
        let (busy, is_busy) = oneshot::channel();
        let (release, may_go) = std_mpsc::channel::<()>();
        let hold = move |_: &Connection| {
            let _ = busy.send(());
            let _ = may_go.recv();
            Ok(0)
        };
        let mut callers = JoinSet::new();
        callers.spawn(write_shared(writer.clone(), hold));
        is_busy.await.expect("the thread is in the first command");
        for n in 0..10 {
            let path = path.clone();
            callers.spawn(write_shared(writer.clone(), move |c| {
                insert(n)(c)?;
                Ok(all(&Connection::open(path)?)?.len())
            }));
        }
        let commands = writer.commands.as_ref().expect("open");
        while commands.capacity() > WAITING_LEN_MAX - 10 {
            tokio::task::yield_now().await;
        }
        release.send(()).expect("held");
        // From outside, none of them saw anything of the others: there was one commit, after the last.
        let seen = callers.join_all().await.into_iter().collect::<StoreResult<Vec<usize>>>();
        assert_eq!(seen.expect("all committed"), [0; 11]);
        let after = writer.write(|c| Ok(all(c)?.len())).await;
        assert_eq!(after.expect("readable"), 10);
    }

    async fn write_shared<W>(writer: Arc<Writer>, work: W) -> StoreResult<usize>
    where
        W: FnOnce(&Connection) -> Verb<usize> + Send + 'static,
    {
        writer.write(work).await
    }

    #[tokio::test]
    async fn a_writer_that_dies_in_mid_command_leaves_its_caller_in_doubt() {
        let writer = Writer::start(connection()).expect("a thread");
        let answer = writer.write(|_| -> Verb<()> { panic!("on purpose") }).await;
        assert!(matches!(answer, Err(StoreError::Unknown(_))), "{answer:?}");
        let later = writer.write(insert(1)).await;
        assert!(matches!(later, Err(StoreError::Aborted(_))), "{later:?}");
    }
}
