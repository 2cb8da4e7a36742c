-- How many bytes of data a run has made. Of those that are there nothing was counted.
ALTER TABLE workflow_runs ADD COLUMN data_bytes bigint NOT NULL DEFAULT 0;
