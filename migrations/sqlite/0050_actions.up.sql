-- Actions. tags, steps and destinations are JSON texts, kept as they were
-- written. Of those that are not deleted no two of a project share a name; ''
-- is no name.
CREATE TABLE actions (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    project_id    BIGINT  NOT NULL,
    name          TEXT    NOT NULL,
    description   TEXT    NOT NULL,
    tags          TEXT    NOT NULL,
    steps         TEXT    NOT NULL,
    deleted       BOOLEAN NOT NULL,
    post_to_chat  BOOLEAN NOT NULL,
    format        TEXT    NOT NULL,
    destinations  TEXT    NOT NULL,
    pinned_at     BIGINT,
    created_by    BIGINT  NOT NULL,
    created_at    BIGINT  NOT NULL,
    updated_at    BIGINT  NOT NULL,
    calculated_at BIGINT  NOT NULL,
    version       BIGINT  NOT NULL
);

CREATE UNIQUE INDEX actions_name ON actions (project_id, name) WHERE NOT deleted AND name <> '';
CREATE INDEX actions_project ON actions (project_id, deleted, calculated_at, id);

-- One number a project, another one after each write to its actions: by it other
-- processes know that there is something to read. Its row is also the lock that
-- orders these writes.
CREATE TABLE action_stamps (
    project_id BIGINT PRIMARY KEY,
    stamp      BIGINT NOT NULL
);

-- Who did what to which action.
CREATE TABLE action_activity (
    id         TEXT   PRIMARY KEY,
    project_id BIGINT NOT NULL,
    action_id  BIGINT NOT NULL,
    activity   TEXT   NOT NULL,
    user_id    BIGINT NOT NULL,
    user_name  TEXT   NOT NULL,
    user_email TEXT   NOT NULL,
    detail     TEXT   NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE INDEX action_activity_project ON action_activity (project_id, created_at, id);
CREATE INDEX action_activity_action ON action_activity (action_id, created_at, id);
