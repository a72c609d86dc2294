ALTER TABLE event_erasures DROP COLUMN deleted_at;
DROP TABLE event_insertion;
