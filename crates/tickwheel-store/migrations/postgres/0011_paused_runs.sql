-- Runs that are paused (status 4), and since when. They are few; whoever takes a task looks here whether its run is
-- among them. Its id as bytes has the same order and is in no other index, so that no plan takes another one for this.
ALTER TABLE workflow_runs ADD COLUMN paused_at bigint;

CREATE INDEX workflow_runs_paused ON workflow_runs (uuid_send(id)) WHERE status = 4;
