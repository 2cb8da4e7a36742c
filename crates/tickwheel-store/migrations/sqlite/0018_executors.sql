-- Jobs with a built-in target that only a worker with certain labels may run.

-- The executor that jobs of the route need: 0 calls HTTP targets, 1 runs commands. Their type makes no difference then, and
-- is empty.
ALTER TABLE routes ADD COLUMN executor INTEGER;
