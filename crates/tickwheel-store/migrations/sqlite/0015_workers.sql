-- Workers: the jobs that wait for one, by route, and the sessions of workers beside those of nodes.

-- What decides which workers can run a job. The id is a digest of the rest.
CREATE TABLE routes (
    id       BLOB PRIMARY KEY,
    queue    TEXT NOT NULL,
    type     TEXT NOT NULL,
    requires TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Of a job for workers. Those that are here already get theirs from the program that runs this.
ALTER TABLE jobs ADD COLUMN route BLOB;
-- The session of the node that claimed it for a worker.
ALTER TABLE jobs ADD COLUMN claimed_by BLOB;

-- Whoever looks for jobs of the built-in executors need not walk past those that wait for a worker, and whoever looks for
-- jobs of one route sees no others.
DROP INDEX jobs_due;
CREATE INDEX jobs_due ON jobs (priority, due_at, id) WHERE due_at < 9223372036854775807 AND route IS NULL;
CREATE INDEX jobs_route ON jobs (route, priority, due_at, id)
    WHERE due_at < 9223372036854775807 AND route IS NOT NULL;

-- 3 is running. By session, for a worker runs many at once; with the deadline, so that whoever looks for those that are
-- over reads nothing else.
DROP INDEX jobs_running;
CREATE INDEX jobs_running ON jobs (session, deadline) WHERE state = 3;

-- A session is a worker's if it has a profile.
ALTER TABLE sessions ADD COLUMN profile TEXT;
ALTER TABLE sessions ADD COLUMN instance BLOB;
ALTER TABLE sessions ADD COLUMN lease_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN opened_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN draining INTEGER NOT NULL DEFAULT 0;
CREATE UNIQUE INDEX sessions_instance ON sessions (instance) WHERE instance IS NOT NULL;
