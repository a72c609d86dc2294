-- The changes of flags, cohorts and actions, for clients that follow them. The
-- revision of a project grows by one with each change and never goes back; its
-- row is the lock that gives the changes their order. Old changes are removed.
CREATE TABLE change_revisions (
    project_id BIGINT NOT NULL PRIMARY KEY,
    revision   BIGINT NOT NULL,
    changed_at BIGINT NOT NULL
);

CREATE TABLE changes (
    project_id BIGINT NOT NULL,
    revision   BIGINT NOT NULL,
    changed_at BIGINT NOT NULL,
    kind       TEXT   NOT NULL, -- feature_flag, cohort, action or group_types
    item_id    BIGINT NOT NULL, -- 0 for group_types
    name       TEXT   NOT NULL, -- the key of a flag
    operation  TEXT   NOT NULL, -- created, updated or deleted
    PRIMARY KEY (project_id, revision)
);
