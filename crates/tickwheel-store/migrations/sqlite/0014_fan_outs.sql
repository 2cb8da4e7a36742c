-- What a fan-out knows of its items has a column of its own. Until now it stood in place of the payload, which a fan-out
-- does not have. (3 is the number of that kind of target.)

ALTER TABLE jobs ADD COLUMN fan_out TEXT;
UPDATE jobs SET fan_out = payload, payload = 'null' WHERE target = 3 AND payload LIKE '{"first":%';

ALTER TABLE finished_jobs ADD COLUMN fan_out TEXT;
UPDATE finished_jobs SET fan_out = payload, payload = 'null' WHERE target = 3 AND payload LIKE '{"first":%';
