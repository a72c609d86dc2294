-- Which events and properties a project has: kind is 0 for the name of an
-- event, 1, 2 and 3 for a property of events, persons and groups; group_index
-- is -1 but for groups. Bounded per project by the config.
CREATE TABLE definitions (
    id            TEXT PRIMARY KEY,
    project_id    BIGINT NOT NULL,
    kind          BIGINT NOT NULL,
    group_index   BIGINT NOT NULL,
    name          TEXT NOT NULL,
    property_type TEXT NOT NULL DEFAULT '',
    created_at    BIGINT NOT NULL,
    last_seen_at  BIGINT NOT NULL,
    description   TEXT NOT NULL DEFAULT '',
    tags          TEXT NOT NULL DEFAULT '[]',
    hidden        BOOLEAN NOT NULL DEFAULT FALSE,
    verified      BOOLEAN NOT NULL DEFAULT FALSE,
    verified_at   BIGINT NOT NULL DEFAULT 0,
    verified_by   BIGINT NOT NULL DEFAULT 0,
    updated_at    BIGINT NOT NULL DEFAULT 0,
    updated_by    BIGINT NOT NULL DEFAULT 0,
    UNIQUE (project_id, kind, group_index, name)
);
