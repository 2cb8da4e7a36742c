-- Workflows, their runs, and what is to be looked at.
--
-- What a version says never changes once it is there. `removed`: it was the latest when the workflow was removed.
CREATE TABLE workflows (
    created_at bigint NOT NULL,
    version integer NOT NULL,
    removed boolean NOT NULL DEFAULT false,
    tenant text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    spec text NOT NULL,
    CONSTRAINT workflows_pkey PRIMARY KEY (tenant, name, version)
);

-- The tasks of a run are jobs whose ids follow the run's: a run is one range of their keys. Every end of a task changes `open`, which is in no
-- index, and pages keep room for that: a heap-only update.
CREATE TABLE workflow_runs (
    id uuid NOT NULL,
    revision bigint NOT NULL,
    created_at bigint NOT NULL,
    version integer NOT NULL,
    next_index integer NOT NULL,
    blocked integer NOT NULL,
    stalled integer NOT NULL,
    total integer NOT NULL,
    open integer NOT NULL,
    partition smallint NOT NULL,
    status smallint NOT NULL,
    cancel_requested boolean NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    workflow text COLLATE "C" NOT NULL,
    input text NOT NULL,
    ended_at bigint,
    stalls_at bigint,
    job_id uuid,
    after_first integer,
    idempotency_key text COLLATE "C",
    fingerprint bytea,
    CONSTRAINT workflow_runs_pkey PRIMARY KEY (id)
) WITH (
    fillfactor = 60,
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_threshold = 2000
);
CREATE UNIQUE INDEX workflow_runs_key ON workflow_runs (tenant, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX workflow_runs_workflow ON workflow_runs (tenant, workflow, id);
-- 0 is running: the others are not looked at any more.
CREATE INDEX workflow_runs_stalls ON workflow_runs (stalls_at) WHERE status = 0 AND stalls_at IS NOT NULL;

-- What the conductor has to look at: a task, or (number zero) a run. `times` is another number whenever it is asked for, also after
-- the row was gone: so nobody takes off the list what was asked for after he had looked.
CREATE TABLE workflow_looks (
    id uuid NOT NULL,
    times bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    CONSTRAINT workflow_looks_pkey PRIMARY KEY (id)
) WITH (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000
);

-- Who lets a waiting job go: 0 its counts, 1 its counts if all went well, 2 and 3 the conductor.
ALTER TABLE jobs ADD COLUMN release smallint NOT NULL DEFAULT 0;

-- What is told instead of the outcome of a job.
ALTER TABLE callbacks ADD COLUMN document text;
