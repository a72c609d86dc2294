-- How far the worker has come in the journal, written in the transaction of
-- what it did: a crash can neither skip an event nor process one twice.
CREATE TABLE ingestion_cursors (
    name       TEXT PRIMARY KEY,
    journal    TEXT NOT NULL,
    seq        BIGINT NOT NULL,
    idx        BIGINT NOT NULL,
    count      BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

-- What projects should know of events that were dropped or changed: one row a
-- type, key and hour, with how often and the latest case.
CREATE TABLE ingestion_warnings (
    project_id BIGINT NOT NULL,
    type       TEXT NOT NULL,
    key        TEXT NOT NULL,
    hour       BIGINT NOT NULL,
    dropped    BOOLEAN NOT NULL,
    count      BIGINT NOT NULL,
    first_at   BIGINT NOT NULL,
    last_at    BIGINT NOT NULL,
    event_uuid TEXT NOT NULL,
    details    TEXT NOT NULL,
    PRIMARY KEY (project_id, type, key, hour)
);

CREATE INDEX ingestion_warnings_recent ON ingestion_warnings (project_id, last_at);
CREATE INDEX ingestion_warnings_age ON ingestion_warnings (last_at);

-- Events that a stage of the worker or a sink could not take, to be looked at
-- and replayed. source is worker, or sink/ and the name of the instance; seq is
-- the number the event had on its way to that sink.
CREATE TABLE dead_letters (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    project_id  BIGINT NOT NULL,
    source      TEXT NOT NULL,
    event_uuid  TEXT NOT NULL,
    event       TEXT NOT NULL,
    distinct_id TEXT NOT NULL,
    received_at BIGINT NOT NULL,
    created_at  BIGINT NOT NULL,
    failed_at   BIGINT NOT NULL,
    attempts    BIGINT NOT NULL,
    class       TEXT NOT NULL,
    code        TEXT NOT NULL,
    message     TEXT NOT NULL,
    seq         BIGINT NOT NULL,
    payload     TEXT NOT NULL,
    UNIQUE (source, project_id, event_uuid)
);

CREATE INDEX dead_letters_project ON dead_letters (project_id, id);
CREATE INDEX dead_letters_event ON dead_letters (project_id, event_uuid);
CREATE INDEX dead_letters_age ON dead_letters (failed_at);
