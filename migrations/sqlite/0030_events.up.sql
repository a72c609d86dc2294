-- Every event once, in the order it was stored. properties is the JSON text as
-- it was sent; frequently queried values are also columns, and
-- events_by_name holds all that a count of an event by address needs.

CREATE TABLE events (
    id             INTEGER PRIMARY KEY,
    project_id     INTEGER NOT NULL,
    uuid           BLOB    NOT NULL,
    event          TEXT    NOT NULL,
    distinct_id    TEXT    NOT NULL,
    person_uuid    BLOB,
    timestamp      INTEGER NOT NULL,
    received_at    INTEGER NOT NULL,
    current_url    TEXT, -- $current_url, its first 1000 bytes
    host           TEXT, -- $host
    pathname       TEXT, -- $pathname
    flag_key       TEXT, -- the flag that the event is about
    flag_response  TEXT, -- $feature_flag_response, as text
    elements_chain TEXT,
    properties     TEXT    NOT NULL
);
CREATE UNIQUE INDEX events_uuid ON events (project_id, uuid);
CREATE INDEX events_newest ON events (project_id, timestamp);
CREATE INDEX events_by_name ON events (project_id, event, timestamp, current_url, distinct_id);
CREATE INDEX events_by_distinct_id ON events (project_id, distinct_id, timestamp);
CREATE INDEX events_by_flag ON events (project_id, flag_key, event, timestamp, flag_response, distinct_id)
    WHERE flag_key IS NOT NULL;
