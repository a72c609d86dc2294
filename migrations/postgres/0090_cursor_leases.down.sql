ALTER TABLE ingestion_cursors DROP COLUMN lease;
