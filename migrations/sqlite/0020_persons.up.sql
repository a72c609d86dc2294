-- People, the distinct ids they go by, and groups. Properties are JSON objects
-- kept as text, so that numbers come back digit by digit.

CREATE TABLE persons (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    project_id    INTEGER NOT NULL,
    uuid          TEXT    NOT NULL,
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    is_identified BOOLEAN NOT NULL DEFAULT FALSE,
    version       INTEGER NOT NULL DEFAULT 0,
    label         TEXT, -- e-mail addresses and names in lower case, for searching
    properties    TEXT    NOT NULL DEFAULT '{}',
    UNIQUE (project_id, uuid)
);
CREATE INDEX persons_newest ON persons (project_id, created_at);
CREATE INDEX persons_by_label ON persons (project_id, label) WHERE label IS NOT NULL;

-- Who a distinct id stands for, now. Events keep their distinct id and find
-- their person here, so a merge moves rows of this table and nothing else.
CREATE TABLE person_distinct_ids (
    project_id  INTEGER NOT NULL,
    distinct_id TEXT    NOT NULL,
    person_id   INTEGER NOT NULL REFERENCES persons (id),
    added_at    INTEGER NOT NULL,
    PRIMARY KEY (project_id, distinct_id)
) WITHOUT ROWID;
CREATE INDEX person_distinct_ids_person ON person_distinct_ids (person_id);

-- Distinct ids that came with $process_person_profile false before they had a
-- person: the person of a later merge takes its uuid from them.
CREATE TABLE lone_distinct_ids (
    project_id  INTEGER NOT NULL,
    distinct_id TEXT    NOT NULL,
    PRIMARY KEY (project_id, distinct_id)
) WITHOUT ROWID;

CREATE TABLE group_types (
    project_id    INTEGER NOT NULL,
    name          TEXT    NOT NULL,
    slot          INTEGER NOT NULL,
    name_singular TEXT,
    name_plural   TEXT,
    created_at    INTEGER NOT NULL,
    PRIMARY KEY (project_id, name),
    UNIQUE (project_id, slot)
);

-- A group goes with its type.
CREATE TABLE project_groups (
    project_id INTEGER NOT NULL,
    slot       INTEGER NOT NULL,
    group_key  TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    version    INTEGER NOT NULL DEFAULT 0,
    label      TEXT, -- its name in lower case, for searching
    properties TEXT    NOT NULL DEFAULT '{}',
    PRIMARY KEY (project_id, slot, group_key),
    FOREIGN KEY (project_id, slot) REFERENCES group_types (project_id, slot) ON DELETE CASCADE
);
CREATE INDEX project_groups_newest ON project_groups (project_id, slot, created_at);
