-- Callbacks wait by receiver, and belong to the session that sends them.

ALTER TABLE callbacks ADD COLUMN receiver TEXT NOT NULL DEFAULT '';
ALTER TABLE callbacks ADD COLUMN session BLOB;

-- Scheme, host and port: everything before the first slash behind them.
UPDATE callbacks SET receiver = lower(substr(url, 1, min(255, instr(substr(url, 9) || '/', '/') + 7)));

DROP INDEX callbacks_due_at;
CREATE INDEX callbacks_due ON callbacks (receiver, due_at, id) WHERE session IS NULL;
CREATE INDEX callbacks_taken ON callbacks (session) WHERE session IS NOT NULL;
