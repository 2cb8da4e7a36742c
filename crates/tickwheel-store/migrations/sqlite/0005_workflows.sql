-- Workflows, their runs, and what is to be looked at.

-- What a version says never changes once it is there. `removed`: it was the latest when the workflow was removed.
CREATE TABLE workflows (
    tenant     TEXT NOT NULL,
    name       TEXT NOT NULL,
    version    INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    removed    INTEGER NOT NULL DEFAULT 0,
    spec       TEXT NOT NULL,
    PRIMARY KEY (tenant, name, version)
) STRICT, WITHOUT ROWID;

-- The tasks of a run are jobs whose ids follow the run's: a run is one range of their keys.
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
) STRICT;

CREATE UNIQUE INDEX workflow_runs_key ON workflow_runs (tenant, idempotency_key) WHERE idempotency_key IS NOT NULL;

CREATE INDEX workflow_runs_workflow ON workflow_runs (tenant, workflow, id);

-- 0 is running: the others are not looked at any more.
CREATE INDEX workflow_runs_stalls ON workflow_runs (stalls_at) WHERE status = 0 AND stalls_at IS NOT NULL;

-- What the conductor has to look at: a task, or (number zero) a run. `times` is another number whenever it is asked for, also after
-- the row was gone: so nobody takes off the list what was asked for after he had looked.
CREATE TABLE workflow_looks (
    times INTEGER PRIMARY KEY AUTOINCREMENT,
    id    BLOB NOT NULL UNIQUE
) STRICT;

-- Who lets a waiting job go: 0 its counts, 1 its counts if all went well, 2 and 3 the conductor.
ALTER TABLE jobs ADD COLUMN release INTEGER NOT NULL DEFAULT 0;

-- What is told instead of the outcome of a job.
ALTER TABLE callbacks ADD COLUMN document TEXT;
