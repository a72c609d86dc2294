-- Only SQLite has dictionaries of events: PostgreSQL compresses long texts itself.
SELECT 1;
