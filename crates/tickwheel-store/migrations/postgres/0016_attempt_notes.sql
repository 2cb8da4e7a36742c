-- What attempts say beside how they ended: log lines, progress, and effects that happen once.

-- How much there is of the log of an attempt.
CREATE TABLE attempt_logs (
    job_id     uuid NOT NULL,
    attempt    integer NOT NULL,
    next_line  bigint NOT NULL DEFAULT 0,
    first_line bigint NOT NULL DEFAULT 0,
    lines      bigint NOT NULL DEFAULT 0,
    bytes      bigint NOT NULL DEFAULT 0,
    dropped    bigint NOT NULL DEFAULT 0,
    CONSTRAINT attempt_logs_pkey PRIMARY KEY (job_id, attempt)
) WITH (fillfactor = 80);

-- Lines with consecutive numbers, as one JSON text.
CREATE TABLE log_chunks (
    job_id     uuid NOT NULL,
    attempt    integer NOT NULL,
    first_line bigint NOT NULL,
    lines      bigint NOT NULL,
    bytes      bigint NOT NULL,
    content    text NOT NULL,
    CONSTRAINT log_chunks_pkey PRIMARY KEY (job_id, attempt, first_line)
);

-- What an attempt said last. Of an attempt that is over it counts no longer, and goes when somebody cleans up.
CREATE TABLE job_progress (
    job_id   uuid NOT NULL,
    attempt  integer NOT NULL,
    percent  smallint,
    message  text,
    noted_at bigint NOT NULL,
    CONSTRAINT job_progress_pkey PRIMARY KEY (job_id)
) WITH (fillfactor = 80);

-- Effects that happen once. The job is zero where the key is the same for all jobs of the tenant.
CREATE TABLE once_keys (
    tenant         text COLLATE "C" NOT NULL,
    job_id         uuid NOT NULL,
    key            text COLLATE "C" NOT NULL,
    holder_job     uuid NOT NULL,
    holder_attempt integer NOT NULL,
    in_doubt       boolean NOT NULL,
    result         text,
    ttl_ms         bigint NOT NULL,
    expires_at     bigint NOT NULL,
    CONSTRAINT once_keys_pkey PRIMARY KEY (tenant, job_id, key)
);
CREATE INDEX once_keys_expiry ON once_keys (expires_at);
