-- SQLite has no outbox: events.url needs PostgreSQL. The step keeps the numbers of both
-- databases the same.
SELECT 1;
