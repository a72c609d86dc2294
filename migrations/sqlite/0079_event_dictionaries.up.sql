-- Dictionaries of compressed properties of events. events.properties is JSON as text,
-- or bytes that begin with 1 and the id of a dictionary; see core/db/rowcodec. Rows
-- refer to a dictionary without a foreign key, and none is ever deleted.

CREATE TABLE event_dictionaries (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    project_id INTEGER NOT NULL,
    codec      TEXT    NOT NULL,
    content    BLOB    NOT NULL,
    checksum   BLOB    NOT NULL, -- SHA-256 of content
    made_at    INTEGER NOT NULL
);
CREATE INDEX event_dictionaries_by_project ON event_dictionaries (project_id);
