-- The words of the field.

ALTER TABLE workflow_looks RENAME TO reconcile_requests;

ALTER TABLE workflow_runs RENAME COLUMN spoiled TO had_failure;
