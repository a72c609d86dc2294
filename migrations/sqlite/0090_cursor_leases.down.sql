DROP INDEX erased_ids_records;
ALTER TABLE ingestion_cursors DROP COLUMN lease;
