-- What runs of workflows cost.

-- Whether a job of the run has ever ended other than well. Of those that are there it is not known.
ALTER TABLE workflow_runs ADD COLUMN spoiled INTEGER NOT NULL DEFAULT 1;

-- A job that waits for others is due at no time, and is not looked for by its time: it gets its entry when it is let go.
DROP INDEX jobs_due;
CREATE INDEX jobs_due ON jobs (priority, due_at, id) WHERE due_at < 9223372036854775807;
