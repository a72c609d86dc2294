DROP TABLE erasure_scans;
