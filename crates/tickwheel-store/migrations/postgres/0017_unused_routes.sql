-- Routes that no live job has are removed: whoever looks finds the jobs of a route in this index or in jobs_route.
CREATE INDEX jobs_route_not_due ON jobs (route) WHERE due_at = 9223372036854775807 AND route IS NOT NULL;
