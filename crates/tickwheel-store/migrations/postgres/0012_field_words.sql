-- The words of the field.

ALTER TABLE workflow_looks RENAME TO reconcile_requests;
ALTER TABLE reconcile_requests RENAME CONSTRAINT workflow_looks_pkey TO reconcile_requests_pkey;
ALTER SEQUENCE workflow_looks_times_seq RENAME TO reconcile_requests_times_seq;

ALTER TABLE workflow_runs RENAME COLUMN spoiled TO had_failure;
