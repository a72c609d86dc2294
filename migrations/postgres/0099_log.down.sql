DROP FUNCTION log_append(INTEGER[], INTEGER[], BYTEA[]);
DROP TABLE log_batches;
DROP TABLE log_segments;
DROP TABLE log_store;
