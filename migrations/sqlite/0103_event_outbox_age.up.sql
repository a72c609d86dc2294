-- SQLite has no outbox. The step keeps the numbers of both databases the same.
SELECT 1;
