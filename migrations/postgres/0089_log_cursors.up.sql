-- The log that the nodes of this database share, with its number of partitions, which
-- the partition of each distinct id derives from.
CREATE TABLE event_logs (
    slot       BIGINT NOT NULL PRIMARY KEY CHECK (slot = 1), -- one row
    id         TEXT   NOT NULL,
    partitions BIGINT NOT NULL
);

-- How far each reader of a partition of that log is. The token is that of the lease of
-- the partition: a commit with a lower one changes nothing.
CREATE TABLE log_cursors (
    log_id        TEXT   NOT NULL,
    log_partition BIGINT NOT NULL,
    reader        TEXT   NOT NULL,
    token         BIGINT NOT NULL,
    seq           BIGINT NOT NULL, -- all records through this one are done,
    event_index   BIGINT NOT NULL, -- and as many events of the next
    event_count   BIGINT NOT NULL,
    PRIMARY KEY (log_id, log_partition, reader)
);
