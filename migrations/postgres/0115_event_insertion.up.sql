-- The rows of the last insertion into ClickHouse, saved before it is sent: it is repeated with
-- the same rows, and so with the same deduplication token, if its outcome is unknown. It is a
-- table of its own because the transactions of workers lock the row of event_outbox_state.
CREATE TABLE event_insertion (
    id        BIGINT NOT NULL PRIMARY KEY,
    first_row BIGINT NOT NULL,
    last_row  BIGINT NOT NULL
);
INSERT INTO event_insertion (id, first_row, last_row) VALUES (1, 0, 0);

-- When ClickHouse had deleted the events of an erasure. The row stays for a while after that:
-- an insertion that arrives late may bring some back, which are deleted again.
ALTER TABLE event_erasures ADD COLUMN deleted_at TIMESTAMPTZ;
