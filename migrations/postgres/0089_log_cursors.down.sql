DROP TABLE log_cursors;
DROP TABLE event_logs;
