-- Jobs that wait for other jobs. An edge mirrors its parent: 0 it has not ended, 1 it completed, 2 it ended badly.

CREATE TABLE dependencies (
    parent BLOB NOT NULL,
    child  BLOB NOT NULL,
    state  INTEGER NOT NULL,
    PRIMARY KEY (parent, child)
) STRICT, WITHOUT ROWID;

-- Where nobody waits it is empty: one look a batch of settlements.
CREATE INDEX dependencies_open ON dependencies (parent) WHERE state = 0;

-- How many parents of a waiting job have not ended, and how many ended badly.
ALTER TABLE jobs ADD COLUMN open_parents INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN failed_parents INTEGER NOT NULL DEFAULT 0;
ALTER TABLE finished_jobs ADD COLUMN open_parents INTEGER NOT NULL DEFAULT 0;
ALTER TABLE finished_jobs ADD COLUMN failed_parents INTEGER NOT NULL DEFAULT 0;
