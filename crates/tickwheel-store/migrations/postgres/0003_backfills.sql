-- Backfills: a past range of a schedule that is made up for on request.
--
-- A schedule has one at a time, and it is part of how far the schedule has come: a document in its row. NULL: there was none yet.
ALTER TABLE schedules ADD COLUMN backfill text;

-- Runs of firings in one record are few, and one may reach far: this finds those that reach into a range without a walk along the ledger.
CREATE INDEX fires_runs ON fires (schedule_id, nominal_at) WHERE count > 1;
