-- The log of accepted requests in this database (journal.url: postgres). Without that
-- setting the tables are empty. core/eventlog/pglog describes them.
CREATE TABLE log_store (
    one        INTEGER  PRIMARY KEY CHECK (one = 1),
    id         TEXT     NOT NULL,
    partitions INTEGER  NOT NULL,
    trimmed    BIGINT[] NOT NULL -- by partition: the records through this number are deleted
);

-- The segments that have records, each in one of the tables below. The newest takes appends.
CREATE TABLE log_segments (
    generation BIGINT      PRIMARY KEY,
    slot       INTEGER     NOT NULL UNIQUE,
    bases      BIGINT[]    NOT NULL, -- by partition: the newest record before this segment
    began_at   TIMESTAMPTZ NOT NULL
);

-- A row has consecutive records of one partition. Rows are never changed or deleted:
-- the table of a segment is emptied as a whole.
CREATE TABLE log_batches (
    slot      INTEGER     NOT NULL,
    part      INTEGER     NOT NULL,
    last      BIGINT      NOT NULL, -- the number of its newest record
    records   INTEGER     NOT NULL,
    stored_at TIMESTAMPTZ NOT NULL,
    content   BYTEA       NOT NULL,
    PRIMARY KEY (slot, part, last)
) PARTITION BY LIST (slot);

DO $$
BEGIN
    FOR i IN 0..7 LOOP
        EXECUTE format('CREATE TABLE log_batches_%s PARTITION OF log_batches FOR VALUES IN (%s) WITH (toast_tuple_target = 8160)', i, i);
        EXECUTE format('ALTER TABLE log_batches_%s ALTER COLUMN content SET STORAGE EXTERNAL', i);
    END LOOP;
END $$;

-- log_append adds rows and returns the newest number of each partition that has got
-- records. It is a function so that the server has all data before it takes the lock:
-- a client that stops while it sends does not hold it. Each statement sees what was
-- committed before the lock was taken.
CREATE FUNCTION log_append(new_parts INTEGER[], new_records INTEGER[], new_contents BYTEA[], OUT ends_part INTEGER[], OUT ends_last BIGINT[])
LANGUAGE plpgsql AS $$
DECLARE
    segment log_segments;
BEGIN
    IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    PERFORM pg_advisory_xact_lock(5497853124);
    SELECT * INTO STRICT segment FROM log_segments ORDER BY generation DESC LIMIT 1;
    WITH added AS (
        INSERT INTO log_batches (slot, part, last, records, stored_at, content)
        SELECT segment.slot, n.part,
            coalesce((SELECT b.last FROM log_batches b WHERE b.slot = segment.slot AND b.part = n.part ORDER BY b.last DESC LIMIT 1), segment.bases[n.part + 1])
                + sum(n.records) OVER (PARTITION BY n.part ORDER BY n.place),
            n.records, clock_timestamp(), n.content
        FROM unnest(new_parts, new_records, new_contents) WITH ORDINALITY AS n (part, records, content, place)
        RETURNING part, last)
    SELECT array_agg(part), array_agg(last) INTO ends_part, ends_last
    FROM (SELECT part, max(last) AS last FROM added GROUP BY part) e;
END $$;
