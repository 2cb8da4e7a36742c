-- Schedules, what became of their firings, and the calendars they share.
--
-- A schedule moves by changing its row: the revision is what every write of it is compared with. `priority` is that of its jobs, copied
-- from the spec so that a timer need not read it.
CREATE TABLE schedules (
    id uuid NOT NULL,
    revision bigint NOT NULL,
    cursor_at bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    partition smallint NOT NULL,
    priority smallint NOT NULL,
    paused boolean NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    spec text NOT NULL,
    next_at bigint,
    rolled_at bigint,
    held_at bigint,
    wake_at bigint,
    pause_note text,
    CONSTRAINT schedules_pkey PRIMARY KEY (id),
    CONSTRAINT schedules_name UNIQUE (tenant, name)
) WITH (
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_threshold = 2000
);
CREATE INDEX schedules_wake ON schedules (wake_at, id) WHERE wake_at IS NOT NULL;
-- For a list over all tenants.
CREATE INDEX schedules_by_name ON schedules (name, tenant);

-- The ledger. The key is the promise: a schedule has one record, and with it one job, a nominal time.
CREATE TABLE fires (
    schedule_id uuid NOT NULL,
    nominal_at bigint NOT NULL,
    last_at bigint NOT NULL,
    count bigint NOT NULL,
    recorded_at bigint NOT NULL,
    outcome smallint NOT NULL,
    reason smallint NOT NULL,
    job_id uuid,
    CONSTRAINT fires_pkey PRIMARY KEY (schedule_id, nominal_at)
);

-- Days are dates, weekdays numbers (Sunday is 0), both separated by commas.
CREATE TABLE calendars (
    updated_at bigint NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    weekdays text NOT NULL,
    days text NOT NULL,
    CONSTRAINT calendars_pkey PRIMARY KEY (tenant, name)
);

-- Partial: a job that no schedule made has no entry.
ALTER TABLE jobs ADD COLUMN schedule_id uuid;
CREATE INDEX jobs_schedule ON jobs (schedule_id, id) WHERE schedule_id IS NOT NULL;
ALTER TABLE finished_jobs ADD COLUMN schedule_id uuid;
CREATE INDEX finished_jobs_schedule ON finished_jobs (schedule_id, id) WHERE schedule_id IS NOT NULL;
