-- Callbacks wait by receiver, and belong to the session that sends them.

ALTER TABLE callbacks ADD COLUMN receiver text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE callbacks ADD COLUMN session uuid;

-- Scheme, host and port: everything before the first slash behind them.
UPDATE callbacks SET receiver = left(lower(coalesce(substring(url FROM '^[^/]*//[^/?#]*'), url)), 255);

DROP INDEX callbacks_due_at;
CREATE INDEX callbacks_due ON callbacks (receiver, due_at, id) WHERE session IS NULL;
CREATE INDEX callbacks_taken ON callbacks (session) WHERE session IS NOT NULL;
