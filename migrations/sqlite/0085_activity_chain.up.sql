-- The activity log is a chain of hashes: an entry that is sealed has a number and
-- the hash of the entry before it. user_agent and request_id tell where a change
-- came from.
ALTER TABLE activity_log ADD COLUMN user_agent TEXT NOT NULL DEFAULT '';
ALTER TABLE activity_log ADD COLUMN request_id TEXT NOT NULL DEFAULT '';
ALTER TABLE activity_log ADD COLUMN sequence BIGINT;
ALTER TABLE activity_log ADD COLUMN previous TEXT NOT NULL DEFAULT '';
ALTER TABLE activity_log ADD COLUMN hash TEXT NOT NULL DEFAULT '';
ALTER TABLE activity_log ADD COLUMN salt TEXT NOT NULL DEFAULT '';
ALTER TABLE activity_log ADD COLUMN digest TEXT NOT NULL DEFAULT '';

CREATE UNIQUE INDEX activity_log_by_sequence ON activity_log (sequence) WHERE sequence IS NOT NULL;
CREATE INDEX activity_log_unsealed ON activity_log (created_at, id) WHERE sequence IS NULL;

-- One row: the newest sealed entry, and the last one that retention has removed.
CREATE TABLE activity_chain (
    id            BIGINT PRIMARY KEY,
    sequence      BIGINT NOT NULL,
    hash          TEXT   NOT NULL,
    cut_sequence  BIGINT NOT NULL,
    cut_hash      TEXT   NOT NULL
);

INSERT INTO activity_chain VALUES (1, 0, '', 0, '');
