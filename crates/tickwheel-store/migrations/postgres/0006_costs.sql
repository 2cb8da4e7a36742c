-- What jobs and runs of workflows cost.

-- Whether a job of the run has ever ended other than well. Of those that are there it is not known.
ALTER TABLE workflow_runs ADD COLUMN spoiled boolean NOT NULL DEFAULT true;

-- The id in disguise, in the same order. Where the planner takes the table for empty it may look jobs up in any index that has their id, and walks the
-- whole of this one for that: so it has none.
DROP INDEX jobs_due;
CREATE INDEX jobs_due ON jobs (priority, due_at, uuid_send(id));
