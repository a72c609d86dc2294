-- Counters of changes to stored events of a project: events were erased, or
-- persons were merged. Newer rows of events do not show them, so a cached count
-- is stored with these numbers. Project 0 stands for all projects.

CREATE TABLE event_changes (
    project_id BIGINT PRIMARY KEY,
    erased     BIGINT NOT NULL DEFAULT 0,
    people     BIGINT NOT NULL DEFAULT 0
);
