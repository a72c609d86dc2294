DROP TABLE ingestion_usage;
