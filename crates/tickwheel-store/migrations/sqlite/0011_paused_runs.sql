-- Runs that are paused (status 4), and since when. They are few; whoever takes a task looks here whether its run is
-- among them.
ALTER TABLE workflow_runs ADD COLUMN paused_at INTEGER;

CREATE INDEX workflow_runs_paused ON workflow_runs (id) WHERE status = 4;
