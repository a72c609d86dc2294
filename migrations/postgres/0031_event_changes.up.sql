-- How often something happened to the past of a project, which nobody sees who
-- only looks at newer rows of events: events were erased, or people became
-- other people. Whoever keeps what it has counted keeps these numbers with it.
-- Project 0 stands for all of them.

CREATE TABLE event_changes (
    project_id BIGINT PRIMARY KEY,
    erased     BIGINT NOT NULL DEFAULT 0,
    people     BIGINT NOT NULL DEFAULT 0
);
