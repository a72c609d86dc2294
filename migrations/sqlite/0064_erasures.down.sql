DROP TABLE erasure_key;
DROP TABLE erased_ids;
DROP TABLE erasures;
