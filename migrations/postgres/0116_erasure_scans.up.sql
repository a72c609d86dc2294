-- How far each partition of a shared log was read for erasures: the database knows those
-- of the records through seq. The digest of the record tells whether the log still has it.
CREATE TABLE erasure_scans (
    journal TEXT   NOT NULL PRIMARY KEY, -- id of the partition
    seq     BIGINT NOT NULL,
    digest  BIGINT NOT NULL
);
