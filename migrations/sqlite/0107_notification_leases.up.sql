-- SQLite has one process, which asks for no leases of others. The step keeps the numbers
-- of both databases the same.
SELECT 1;
