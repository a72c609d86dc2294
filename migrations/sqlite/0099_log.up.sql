-- SQLite has no shared log: journal.url: postgres needs PostgreSQL. The step keeps the
-- numbers of both databases the same.
SELECT 1;
