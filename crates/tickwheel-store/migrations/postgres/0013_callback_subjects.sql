-- What a callback tells of is a job or a run, and its row says which: 0 is a job, 1 a run.

ALTER TABLE callbacks RENAME COLUMN job_id TO subject_id;
ALTER TABLE callbacks ADD COLUMN subject smallint NOT NULL DEFAULT 0;
UPDATE callbacks SET subject = 1 WHERE document IS NOT NULL;
ALTER INDEX callbacks_job RENAME TO callbacks_subject;

ALTER TABLE callback_tries RENAME COLUMN job_id TO subject_id;
