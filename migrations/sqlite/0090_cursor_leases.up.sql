-- The token of the lease under which a cursor was written last. A reader with a
-- lower token, which has lost its partition, cannot write the cursor any more.
ALTER TABLE ingestion_cursors ADD COLUMN lease BIGINT NOT NULL DEFAULT 0;

-- Erasures that concern the records of a partition behind a number.
CREATE INDEX erased_ids_records ON erased_ids (journal, person_seq);
