-- What jobs and runs of workflows cost.

-- Whether a job of the run has ever ended other than well. Of those that are there it is not known.
ALTER TABLE workflow_runs ADD COLUMN spoiled boolean NOT NULL DEFAULT true;

-- A job that waits for others is due at no time, and is not looked for by its time: it gets its entry when it is let go. And the id is in disguise, in
-- the same order: where the planner takes the table for empty it may look jobs up in any index that has their id, and walk the whole of it for that.
DROP INDEX jobs_due;
CREATE INDEX jobs_due ON jobs (priority, due_at, uuid_send(id)) WHERE due_at < 9223372036854775807;
