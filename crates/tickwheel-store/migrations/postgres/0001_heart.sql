-- Times are milliseconds since the Unix epoch, enums their numbers, spec and tags JSON text. Fixed-width columns come first: no padding.
-- Names are compared by their bytes: the same order everywhere, whatever the database's locale.

-- Jobs that wait or run. The claim must stay a heap-only update: no index may hold a column it changes, and pages keep room for
-- a second, slightly larger version of every row, for a backlog is claimed page by page.
CREATE TABLE jobs (
    id uuid NOT NULL,
    execute_at bigint NOT NULL,
    due_at bigint NOT NULL,
    created_at bigint NOT NULL,
    timeout_ms bigint NOT NULL,
    attempt integer NOT NULL DEFAULT 0,
    retries integer NOT NULL DEFAULT 0,
    lost integer NOT NULL DEFAULT 0,
    burst_failures integer NOT NULL DEFAULT 0,
    partition smallint NOT NULL,
    priority smallint NOT NULL,
    state smallint NOT NULL,
    target smallint NOT NULL,
    cancel_requested boolean NOT NULL DEFAULT false,
    tenant text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    queue text COLLATE "C" NOT NULL,
    spec text NOT NULL,
    payload text NOT NULL,
    tags text NOT NULL,
    burst_started_at bigint,
    session uuid,
    started_at bigint,
    deadline bigint,
    error_code text,
    error_message text,
    CONSTRAINT jobs_pkey PRIMARY KEY (id)
) WITH (
    fillfactor = 45,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 2000,
    autovacuum_analyze_scale_factor = 0.05,
    autovacuum_analyze_threshold = 2000
);
CREATE INDEX jobs_due ON jobs (priority, due_at, id);

-- Jobs that ended, apart from the live ones so that what already ran costs nothing.
CREATE TABLE finished_jobs (
    id uuid NOT NULL,
    execute_at bigint NOT NULL,
    due_at bigint NOT NULL,
    created_at bigint NOT NULL,
    timeout_ms bigint NOT NULL,
    completed_at bigint NOT NULL,
    attempt integer NOT NULL,
    retries integer NOT NULL,
    lost integer NOT NULL,
    partition smallint NOT NULL,
    priority smallint NOT NULL,
    state smallint NOT NULL,
    target smallint NOT NULL,
    last_outcome smallint,
    tenant text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    queue text COLLATE "C" NOT NULL,
    spec text NOT NULL,
    payload text NOT NULL,
    tags text NOT NULL,
    started_at bigint,
    result text,
    error_code text,
    error_message text,
    CONSTRAINT finished_jobs_pkey PRIMARY KEY (id)
);
CREATE INDEX finished_jobs_type ON finished_jobs (type, id);
-- 4 is completed: the rare others are found without walking the many.
CREATE INDEX finished_jobs_state ON finished_jobs (state, id) WHERE state <> 4;

-- Tags of live and finished jobs alike.
CREATE TABLE job_tags (
    tag text COLLATE "C" NOT NULL,
    job_id uuid NOT NULL,
    CONSTRAINT job_tags_pkey PRIMARY KEY (tag, job_id)
);

-- Attempts that are over and did not end their job; the last one of an ended job lives in its row.
CREATE TABLE attempts (
    job_id uuid NOT NULL,
    number integer NOT NULL,
    outcome smallint NOT NULL,
    started_at bigint NOT NULL,
    ended_at bigint NOT NULL,
    error_code text,
    error_message text,
    CONSTRAINT attempts_pkey PRIMARY KEY (job_id, number)
);

CREATE TABLE dead_letters (
    job_id uuid NOT NULL,
    failed_at bigint NOT NULL,
    reason smallint NOT NULL,
    type text COLLATE "C" NOT NULL,
    queue text COLLATE "C" NOT NULL,
    CONSTRAINT dead_letters_pkey PRIMARY KEY (job_id)
);
CREATE INDEX dead_letters_failed_at ON dead_letters (failed_at, job_id);

-- Outcomes that are still to be told to somebody.
CREATE TABLE callbacks (
    id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    job_id uuid NOT NULL,
    completed_at bigint NOT NULL,
    due_at bigint NOT NULL,
    attempt integer NOT NULL,
    tries integer NOT NULL DEFAULT 0,
    state smallint NOT NULL,
    url text NOT NULL,
    result text,
    error_code text,
    error_message text,
    CONSTRAINT callbacks_pkey PRIMARY KEY (id)
);
CREATE INDEX callbacks_due_at ON callbacks (due_at);

CREATE TABLE idempotency_keys (
    tenant text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    fingerprint bytea NOT NULL,
    job_id uuid NOT NULL,
    created_at bigint NOT NULL,
    CONSTRAINT idempotency_keys_pkey PRIMARY KEY (tenant, key)
);

CREATE TABLE queues (
    name text COLLATE "C" NOT NULL,
    paused boolean NOT NULL DEFAULT false,
    CONSTRAINT queues_pkey PRIMARY KEY (name)
);
-- What every claim has to know.
CREATE INDEX queues_paused ON queues (name) WHERE paused;

-- Processes that run jobs, each trusted to be alive until then.
CREATE TABLE sessions (
    id uuid NOT NULL,
    node text NOT NULL,
    expires_at bigint NOT NULL,
    CONSTRAINT sessions_pkey PRIMARY KEY (id)
);

-- One row: what holds for the whole installation.
CREATE TABLE installation (
    single boolean NOT NULL DEFAULT true,
    halted boolean NOT NULL DEFAULT false,
    secret bytea,
    CONSTRAINT installation_pkey PRIMARY KEY (single),
    CONSTRAINT installation_is_one_row CHECK (single)
);
INSERT INTO installation DEFAULT VALUES;
