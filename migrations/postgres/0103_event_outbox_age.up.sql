-- The age of the events that wait for ClickHouse. An older version writes rows without it.
ALTER TABLE event_outbox ADD COLUMN created_at TIMESTAMPTZ NOT NULL DEFAULT now();
