-- SQLite has no outbox of events: the step changes Postgres only.
SELECT 1;
