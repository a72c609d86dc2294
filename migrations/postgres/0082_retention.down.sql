DROP TABLE event_retention_runs;
DROP TABLE event_retention;
