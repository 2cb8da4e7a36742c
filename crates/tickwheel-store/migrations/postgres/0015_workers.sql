-- Workers: the jobs that wait for one, by route, and the sessions of workers beside those of nodes.

-- What decides which workers can run a job. The id is a digest of the rest.
CREATE TABLE routes (
    id       uuid NOT NULL,
    queue    text COLLATE "C" NOT NULL,
    type     text COLLATE "C" NOT NULL,
    requires text NOT NULL,
    CONSTRAINT routes_pkey PRIMARY KEY (id)
);

-- Of a job for workers.
ALTER TABLE jobs ADD COLUMN route uuid;

-- 0 is a worker. So far nothing could be required of one.
UPDATE jobs SET route = encode(substring(sha256(
    convert_to(queue, 'UTF8') || '\x00'::bytea || convert_to(type, 'UTF8') || '\x00'::bytea) FROM 1 FOR 16), 'hex')::uuid
WHERE target = 0;
INSERT INTO routes (id, queue, type, requires)
SELECT DISTINCT route, queue, type, '{}' FROM jobs WHERE route IS NOT NULL;

-- Whoever looks for jobs of the built-in executors need not walk past those that wait for a worker, and whoever looks for
-- jobs of one route sees no others.
DROP INDEX jobs_due;
CREATE INDEX jobs_due ON jobs (priority, due_at, uuid_send(id))
    WHERE due_at < 9223372036854775807 AND route IS NULL;
CREATE INDEX jobs_route ON jobs (route, priority, due_at, uuid_send(id))
    WHERE due_at < 9223372036854775807 AND route IS NOT NULL;

-- A session is a worker's if it has a profile.
ALTER TABLE sessions
    ADD COLUMN profile   text,
    ADD COLUMN instance  uuid,
    ADD COLUMN lease_ms  bigint NOT NULL DEFAULT 0,
    ADD COLUMN opened_at bigint NOT NULL DEFAULT 0,
    ADD COLUMN draining  boolean NOT NULL DEFAULT false;
CREATE UNIQUE INDEX sessions_instance ON sessions (instance) WHERE instance IS NOT NULL;

-- What runs under which worker's session. An index by hand: one on jobs.session would make every claim of every job write
-- all indexes of the job. A row too many is harmless; whoever reads it looks at the job. A worker polls where it likes, so
-- the node that claimed for it is noted too.
CREATE TABLE worker_attempts (
    job_id     uuid NOT NULL,
    session    uuid NOT NULL,
    claimed_by uuid NOT NULL,
    deadline   bigint NOT NULL,
    CONSTRAINT worker_attempts_pkey PRIMARY KEY (job_id)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);
CREATE INDEX worker_attempts_session ON worker_attempts (session);
