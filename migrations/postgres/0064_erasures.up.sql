-- Deletions of persons. A row is written before anything is deleted and is
-- processed to its end; then done_at is set and distinct_ids is emptied. seq is
-- the number of the erasure's record in the journal, 0 until it is appended.
CREATE TABLE erasures (
    id           TEXT    PRIMARY KEY,
    project_id   BIGINT  NOT NULL,
    person_id    BIGINT  NOT NULL, -- 0: known by distinct ids only
    distinct_ids TEXT    NOT NULL, -- a JSON list
    events       BOOLEAN NOT NULL, -- also the events
    requested_at BIGINT  NOT NULL,
    journal      TEXT    NOT NULL,
    seq          BIGINT  NOT NULL,
    done_at      BIGINT
);
CREATE INDEX erasures_open ON erasures (requested_at) WHERE done_at IS NULL;

-- Distinct ids of erased persons, as hashes with erasure_key: events of records
-- of the journal before person_seq do not create their person, those before
-- events_seq are dropped.
CREATE TABLE erased_ids (
    project_id BIGINT NOT NULL,
    id_hash    BYTEA NOT NULL,
    journal    TEXT   NOT NULL,
    person_seq BIGINT NOT NULL,
    person_at  BIGINT NOT NULL,
    events_seq BIGINT NOT NULL, -- 0: the events stay
    events_at  BIGINT NOT NULL,
    PRIMARY KEY (project_id, id_hash, journal)
);

CREATE TABLE erasure_key (
    id  INTEGER PRIMARY KEY,
    key TEXT NOT NULL
);
INSERT INTO erasure_key (id, key) VALUES (1, replace(gen_random_uuid()::TEXT || gen_random_uuid()::TEXT, '-', ''));
