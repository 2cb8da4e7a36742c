-- What attempts say beside how they ended: log lines, progress, and effects that happen once.

-- How much there is of the log of an attempt.
CREATE TABLE attempt_logs (
    job_id     BLOB NOT NULL,
    attempt    INTEGER NOT NULL,
    next_line  INTEGER NOT NULL,
    first_line INTEGER NOT NULL,
    lines      INTEGER NOT NULL,
    bytes      INTEGER NOT NULL,
    dropped    INTEGER NOT NULL,
    PRIMARY KEY (job_id, attempt)
) STRICT, WITHOUT ROWID;

-- Lines with consecutive numbers, as one JSON text.
CREATE TABLE log_chunks (
    job_id     BLOB NOT NULL,
    attempt    INTEGER NOT NULL,
    first_line INTEGER NOT NULL,
    lines      INTEGER NOT NULL,
    bytes      INTEGER NOT NULL,
    content    TEXT NOT NULL,
    PRIMARY KEY (job_id, attempt, first_line)
) STRICT;

-- What an attempt said last. Of an attempt that is over it counts no longer, and goes when somebody cleans up.
CREATE TABLE job_progress (
    job_id   BLOB PRIMARY KEY,
    attempt  INTEGER NOT NULL,
    percent  INTEGER,
    message  TEXT,
    noted_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Effects that happen once. The job is zero where the key is the same for all jobs of the tenant.
CREATE TABLE once_keys (
    tenant         TEXT NOT NULL,
    job_id         BLOB NOT NULL,
    key            TEXT NOT NULL,
    holder_job     BLOB NOT NULL,
    holder_attempt INTEGER NOT NULL,
    in_doubt       INTEGER NOT NULL,
    result         TEXT,
    ttl_ms         INTEGER NOT NULL,
    expires_at     INTEGER NOT NULL,
    PRIMARY KEY (tenant, job_id, key)
) STRICT;
CREATE INDEX once_keys_expiry ON once_keys (expires_at);
