ALTER TABLE notifications DROP COLUMN trace;
