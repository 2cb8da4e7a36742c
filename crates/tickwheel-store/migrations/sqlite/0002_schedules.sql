-- Schedules, what became of their firings, and the calendars they share.
--
-- A schedule moves by changing its row: the revision is what every write of it is compared with. `priority` is that of its jobs, copied
-- from the spec so that a timer need not read it.

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
) STRICT;

CREATE UNIQUE INDEX schedules_name ON schedules (tenant, name);

CREATE INDEX schedules_wake ON schedules (wake_at, id) WHERE wake_at IS NOT NULL;

-- For a list over all tenants.
CREATE INDEX schedules_by_name ON schedules (name, tenant);

-- The ledger. The key is the promise: a schedule has one record, and with it one job, a nominal time.
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

-- Days are dates, weekdays numbers (Sunday is 0), both separated by commas.
CREATE TABLE calendars (
    tenant     TEXT NOT NULL,
    name       TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    weekdays   TEXT NOT NULL,
    days       TEXT NOT NULL,
    PRIMARY KEY (tenant, name)
) STRICT, WITHOUT ROWID;

-- Partial: a job that no schedule made has no entry.
ALTER TABLE jobs ADD COLUMN schedule_id BLOB;
CREATE INDEX jobs_schedule ON jobs (schedule_id, id) WHERE schedule_id IS NOT NULL;
ALTER TABLE finished_jobs ADD COLUMN schedule_id BLOB;
CREATE INDEX finished_jobs_schedule ON finished_jobs (schedule_id, id) WHERE schedule_id IS NOT NULL;
