-- The SQLite schema after all migrations. Written by a test, do not edit.

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

CREATE TABLE calendars (
    tenant     TEXT NOT NULL,
    name       TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    weekdays   TEXT NOT NULL,
    days       TEXT NOT NULL,
    PRIMARY KEY (tenant, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE callback_tries (
    subject_id      BLOB NOT NULL,
    callback_id INTEGER NOT NULL,
    number      INTEGER NOT NULL,
    tried_at    INTEGER NOT NULL,
    state       INTEGER NOT NULL,
    outcome     INTEGER NOT NULL,
    url         TEXT NOT NULL,
    answer      TEXT NOT NULL,
    PRIMARY KEY (subject_id, callback_id, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE callbacks (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    subject_id        BLOB NOT NULL,
    url           TEXT NOT NULL,
    state         INTEGER NOT NULL,
    attempt       INTEGER NOT NULL,
    completed_at  INTEGER NOT NULL,
    tries         INTEGER NOT NULL,
    due_at        INTEGER NOT NULL,
    error_code    TEXT,
    error_message TEXT,
    result        TEXT
, document TEXT, receiver TEXT NOT NULL DEFAULT '', session BLOB, subject INTEGER NOT NULL DEFAULT 0) STRICT;

CREATE INDEX callbacks_due ON callbacks (receiver, due_at, id) WHERE session IS NULL;

CREATE INDEX callbacks_subject ON callbacks (subject_id);

CREATE INDEX callbacks_taken ON callbacks (session) WHERE session IS NOT NULL;

CREATE TABLE dead_letters (
    job_id    BLOB PRIMARY KEY,
    failed_at INTEGER NOT NULL,
    reason    INTEGER NOT NULL,
    type      TEXT NOT NULL,
    queue     TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX dead_letters_failed_at ON dead_letters (failed_at, job_id);

CREATE TABLE dependencies (
    parent BLOB NOT NULL,
    child  BLOB NOT NULL,
    state  INTEGER NOT NULL,
    PRIMARY KEY (parent, child)
) STRICT, WITHOUT ROWID;

CREATE INDEX dependencies_open ON dependencies (parent) WHERE state = 0;

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
, schedule_id BLOB, open_parents INTEGER NOT NULL DEFAULT 0, failed_parents INTEGER NOT NULL DEFAULT 0, fan_out TEXT) STRICT;

CREATE INDEX finished_jobs_schedule ON finished_jobs (schedule_id, id) WHERE schedule_id IS NOT NULL;

CREATE INDEX finished_jobs_state ON finished_jobs (state, id) WHERE state <> 4;

CREATE INDEX finished_jobs_type ON finished_jobs (type, id);

CREATE TABLE fires (
    schedule_id BLOB NOT NULL,
    nominal_at  INTEGER NOT NULL,
    last_at     INTEGER NOT NULL,
    count       INTEGER NOT NULL,
    outcome     INTEGER NOT NULL,
    reason      INTEGER NOT NULL,
    job_id      BLOB,
    recorded_at INTEGER NOT NULL,
    PRIMARY KEY (schedule_id, nominal_at)
) STRICT, WITHOUT ROWID;

CREATE INDEX fires_queued ON fires (schedule_id, nominal_at) WHERE reason = 10;

CREATE INDEX fires_runs ON fires (schedule_id, nominal_at) WHERE count > 1;

CREATE TABLE idempotency_keys (
    tenant      TEXT NOT NULL,
    key         TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    job_id      BLOB NOT NULL,
    created_at  INTEGER NOT NULL,
    PRIMARY KEY (tenant, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE installation (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    halted   INTEGER NOT NULL,
    secret   BLOB
) STRICT;

CREATE TABLE job_progress (
    job_id   BLOB PRIMARY KEY,
    attempt  INTEGER NOT NULL,
    percent  INTEGER,
    message  TEXT,
    noted_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE job_tags (
    tag    TEXT NOT NULL,
    job_id BLOB NOT NULL,
    PRIMARY KEY (tag, job_id)
) STRICT, WITHOUT ROWID;

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
, schedule_id BLOB, open_parents INTEGER NOT NULL DEFAULT 0, failed_parents INTEGER NOT NULL DEFAULT 0, release INTEGER NOT NULL DEFAULT 0, fan_out TEXT, route BLOB, claimed_by BLOB) STRICT, WITHOUT ROWID;

CREATE INDEX jobs_due ON jobs (priority, due_at, id) WHERE due_at < 9223372036854775807 AND route IS NULL;

CREATE INDEX jobs_route ON jobs (route, priority, due_at, id)
    WHERE due_at < 9223372036854775807 AND route IS NOT NULL;

CREATE INDEX jobs_route_not_due ON jobs (route) WHERE due_at = 9223372036854775807 AND route IS NOT NULL;

CREATE INDEX jobs_running ON jobs (session, deadline) WHERE state = 3;

CREATE INDEX jobs_schedule ON jobs (schedule_id, id) WHERE schedule_id IS NOT NULL;

CREATE TABLE log_chunks (
    job_id     BLOB NOT NULL,
    attempt    INTEGER NOT NULL,
    first_line INTEGER NOT NULL,
    lines      INTEGER NOT NULL,
    bytes      INTEGER NOT NULL,
    content    TEXT NOT NULL,
    PRIMARY KEY (job_id, attempt, first_line)
) STRICT;

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

CREATE TABLE queues (
    name   TEXT PRIMARY KEY,
    paused INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE "reconcile_requests" (
    times INTEGER PRIMARY KEY AUTOINCREMENT,
    id    BLOB NOT NULL UNIQUE
) STRICT;

CREATE TABLE routes (
    id       BLOB PRIMARY KEY,
    queue    TEXT NOT NULL,
    type     TEXT NOT NULL,
    requires TEXT NOT NULL
, executor INTEGER) STRICT, WITHOUT ROWID;

CREATE TABLE schedules (
    id         BLOB PRIMARY KEY NOT NULL,
    tenant     TEXT NOT NULL,
    name       TEXT NOT NULL,
    partition  INTEGER NOT NULL,
    priority   INTEGER NOT NULL,
    paused     INTEGER NOT NULL,
    revision   INTEGER NOT NULL,
    cursor_at  INTEGER NOT NULL,
    next_at    INTEGER,
    rolled_at  INTEGER,
    held_at    INTEGER,
    wake_at    INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    pause_note TEXT,
    spec       TEXT NOT NULL
, backfill TEXT) STRICT;

CREATE INDEX schedules_by_name ON schedules (name, tenant);

CREATE UNIQUE INDEX schedules_name ON schedules (tenant, name);

CREATE INDEX schedules_wake ON schedules (wake_at, id) WHERE wake_at IS NOT NULL;

CREATE TABLE schema_migrations (
    version    INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    applied_at INTEGER NOT NULL
) STRICT;

CREATE TABLE sessions (
    id         BLOB PRIMARY KEY,
    node       TEXT NOT NULL,
    expires_at INTEGER NOT NULL
, profile TEXT, instance BLOB, lease_ms INTEGER NOT NULL DEFAULT 0, opened_at INTEGER NOT NULL DEFAULT 0, draining INTEGER NOT NULL DEFAULT 0) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX sessions_instance ON sessions (instance) WHERE instance IS NOT NULL;

CREATE TABLE workflow_runs (
    id               BLOB PRIMARY KEY NOT NULL,
    partition        INTEGER NOT NULL,
    tenant           TEXT NOT NULL,
    workflow         TEXT NOT NULL,
    version          INTEGER NOT NULL,
    status           INTEGER NOT NULL,
    created_at       INTEGER NOT NULL,
    ended_at         INTEGER,
    cancel_requested INTEGER NOT NULL,
    next_index       INTEGER NOT NULL,
    after_first      INTEGER,
    blocked          INTEGER NOT NULL,
    stalled          INTEGER NOT NULL,
    stalls_at        INTEGER,
    job_id           BLOB,
    total            INTEGER NOT NULL,
    open             INTEGER NOT NULL,
    revision         INTEGER NOT NULL,
    idempotency_key  TEXT,
    fingerprint      BLOB,
    input            TEXT NOT NULL
, had_failure INTEGER NOT NULL DEFAULT 1, data_bytes INTEGER NOT NULL DEFAULT 0, paused_at INTEGER) STRICT;

CREATE UNIQUE INDEX workflow_runs_key ON workflow_runs (tenant, idempotency_key) WHERE idempotency_key IS NOT NULL;

CREATE INDEX workflow_runs_paused ON workflow_runs (id) WHERE status = 4;

CREATE INDEX workflow_runs_stalls ON workflow_runs (stalls_at) WHERE status = 0 AND stalls_at IS NOT NULL;

CREATE INDEX workflow_runs_workflow ON workflow_runs (tenant, workflow, id);

CREATE TABLE workflows (
    tenant     TEXT NOT NULL,
    name       TEXT NOT NULL,
    version    INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    removed    INTEGER NOT NULL DEFAULT 0,
    spec       TEXT NOT NULL,
    PRIMARY KEY (tenant, name, version)
) STRICT, WITHOUT ROWID;
