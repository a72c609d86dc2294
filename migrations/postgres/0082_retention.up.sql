-- How long events are kept: a row without an event is the rule of the project, others
-- are of an event name. 0 seconds keep for ever.
CREATE TABLE event_retention (
    project_id   BIGINT NOT NULL,
    event        TEXT   NOT NULL,
    keep_seconds BIGINT NOT NULL,
    updated_at   BIGINT NOT NULL,
    PRIMARY KEY (project_id, event)
);
-- The last deletion of old events of each project, with timestamps from from_at to to_at.
-- finished_at is NULL until the counts of that time are corrected.
CREATE TABLE event_retention_runs (
    project_id  BIGINT NOT NULL PRIMARY KEY,
    from_at     BIGINT NOT NULL,
    to_at       BIGINT NOT NULL,
    started_at  BIGINT NOT NULL,
    finished_at BIGINT,
    deleted     BIGINT NOT NULL
);
