ALTER TABLE event_outbox DROP COLUMN created_at;
