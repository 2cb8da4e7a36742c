-- Jobs, from submission to history, and what belongs to them.
--
-- Times are milliseconds since the Unix epoch, enums their numbers, ids the sixteen bytes of a UUID, JSON is text.
-- Wide columns come last, so that a filter on the narrow ones need not read past them.

CREATE TABLE jobs (
    id               BLOB PRIMARY KEY,
    partition        INTEGER NOT NULL,
    tenant           TEXT NOT NULL,
    type             TEXT NOT NULL,
    queue            TEXT NOT NULL,
    priority         INTEGER NOT NULL,
    state            INTEGER NOT NULL,
    target           INTEGER NOT NULL,
    execute_at       INTEGER NOT NULL,
    due_at           INTEGER NOT NULL,
    created_at       INTEGER NOT NULL,
    timeout_ms       INTEGER NOT NULL,
    attempt          INTEGER NOT NULL,
    retries          INTEGER NOT NULL,
    lost             INTEGER NOT NULL,
    burst_started_at INTEGER,
    burst_failures   INTEGER NOT NULL,
    session          BLOB,
    started_at       INTEGER,
    deadline         INTEGER,
    cancel_requested INTEGER NOT NULL,
    error_code       TEXT,
    error_message    TEXT,
    tags             TEXT NOT NULL,
    spec             TEXT NOT NULL,
    payload          TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX jobs_due ON jobs (priority, due_at, id);

-- 3 is running: few and short-lived, so the index stays tiny, and whoever looks for abandoned attempts need not go through a
-- backlog to find them.
CREATE INDEX jobs_running ON jobs (id) WHERE state = 3;

-- With a rowid: history is large and mostly appended to, and its rows are too wide for the inner pages of a clustered table.
CREATE TABLE finished_jobs (
    id            BLOB PRIMARY KEY NOT NULL,
    partition     INTEGER NOT NULL,
    tenant        TEXT NOT NULL,
    type          TEXT NOT NULL,
    queue         TEXT NOT NULL,
    priority      INTEGER NOT NULL,
    state         INTEGER NOT NULL,
    target        INTEGER NOT NULL,
    execute_at    INTEGER NOT NULL,
    due_at        INTEGER NOT NULL,
    created_at    INTEGER NOT NULL,
    timeout_ms    INTEGER NOT NULL,
    attempt       INTEGER NOT NULL,
    retries       INTEGER NOT NULL,
    lost          INTEGER NOT NULL,
    started_at    INTEGER,
    completed_at  INTEGER NOT NULL,
    last_outcome  INTEGER,
    error_code    TEXT,
    error_message TEXT,
    tags          TEXT NOT NULL,
    spec          TEXT NOT NULL,
    payload       TEXT NOT NULL,
    result        TEXT
) STRICT;

CREATE INDEX finished_jobs_type ON finished_jobs (type, id);

-- 4 is completed: what failed or was cancelled is rare and looked for.
CREATE INDEX finished_jobs_state ON finished_jobs (state, id) WHERE state <> 4;

CREATE TABLE job_tags (
    tag    TEXT NOT NULL,
    job_id BLOB NOT NULL,
    PRIMARY KEY (tag, job_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE attempts (
    job_id        BLOB NOT NULL,
    number        INTEGER NOT NULL,
    started_at    INTEGER NOT NULL,
    ended_at      INTEGER NOT NULL,
    outcome       INTEGER NOT NULL,
    error_code    TEXT,
    error_message TEXT,
    PRIMARY KEY (job_id, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE dead_letters (
    job_id    BLOB PRIMARY KEY,
    failed_at INTEGER NOT NULL,
    reason    INTEGER NOT NULL,
    type      TEXT NOT NULL,
    queue     TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX dead_letters_failed_at ON dead_letters (failed_at, job_id);

-- Numbers are never reused: the late report of a try must not hit another callback.
CREATE TABLE callbacks (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id        BLOB NOT NULL,
    url           TEXT NOT NULL,
    state         INTEGER NOT NULL,
    attempt       INTEGER NOT NULL,
    completed_at  INTEGER NOT NULL,
    tries         INTEGER NOT NULL,
    due_at        INTEGER NOT NULL,
    error_code    TEXT,
    error_message TEXT,
    result        TEXT
) STRICT;

CREATE INDEX callbacks_due_at ON callbacks (due_at);

CREATE TABLE idempotency_keys (
    tenant      TEXT NOT NULL,
    key         TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    job_id      BLOB NOT NULL,
    created_at  INTEGER NOT NULL,
    PRIMARY KEY (tenant, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE queues (
    name   TEXT PRIMARY KEY,
    paused INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
    id         BLOB PRIMARY KEY,
    node       TEXT NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE installation (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    halted   INTEGER NOT NULL,
    secret   BLOB
) STRICT;

INSERT INTO installation (only_row, halted) VALUES (1, 0);
