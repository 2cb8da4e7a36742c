-- Firings that wait for the job of an earlier one have their record at once (reason 10, queued) and another one in its place when
-- their turn has come. They are few, and this finds the next of them without a walk along the ledger.
CREATE INDEX fires_queued ON fires (schedule_id, nominal_at) WHERE reason = 10;
