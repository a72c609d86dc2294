-- The revision of the project (flag_stamps) that wrote a flag or a cohort last, so
-- that a server which knows the definitions of a revision reads what changed since.
-- Definitions from before this step have no row.
CREATE TABLE definition_changes (
    project_id BIGINT NOT NULL,
    kind       TEXT   NOT NULL, -- feature_flag or cohort
    item_id    BIGINT NOT NULL,
    stamp      BIGINT NOT NULL,
    PRIMARY KEY (project_id, kind, item_id)
);

CREATE INDEX definition_changes_newest ON definition_changes (project_id, stamp);
