DROP TABLE dead_letters;
DROP TABLE ingestion_warnings;
DROP TABLE ingestion_cursors;
