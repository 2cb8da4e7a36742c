-- Jobs that wait for other jobs. An edge mirrors its parent: 0 it has not ended, 1 it completed, 2 it ended badly.
--
-- Edges are looked up by their parent and nothing else, so the key is the only index, and closing one is a heap-only update as long
-- as its page has room. An index of the open ones would cost that, and be slow to probe where dead rows cannot be removed.
CREATE TABLE dependencies (
    parent uuid NOT NULL,
    child uuid NOT NULL,
    state smallint NOT NULL,
    CONSTRAINT dependencies_pkey PRIMARY KEY (parent, child)
) WITH (fillfactor = 80);

-- How many parents of a waiting job have not ended, and how many ended badly.
ALTER TABLE jobs
    ADD COLUMN open_parents integer NOT NULL DEFAULT 0,
    ADD COLUMN failed_parents integer NOT NULL DEFAULT 0;
ALTER TABLE finished_jobs
    ADD COLUMN open_parents integer NOT NULL DEFAULT 0,
    ADD COLUMN failed_parents integer NOT NULL DEFAULT 0;
