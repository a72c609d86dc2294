-- Dashboards about flags. flag_id is the flag a dashboard was generated for,
-- 0 for none; query of a tile defines which events it counts, and how.
CREATE TABLE dashboards (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    project_id  BIGINT  NOT NULL,
    flag_id     BIGINT  NOT NULL,
    name        TEXT    NOT NULL,
    description TEXT    NOT NULL,
    date_from   TEXT    NOT NULL,
    tags        TEXT    NOT NULL,
    deleted     BOOLEAN NOT NULL,
    created_by  BIGINT  NOT NULL,
    created_at  BIGINT  NOT NULL,
    updated_at  BIGINT  NOT NULL
);

CREATE INDEX dashboards_newest ON dashboards (project_id, deleted, created_at, id);

CREATE TABLE dashboard_tiles (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    dashboard_id BIGINT NOT NULL,
    name         TEXT   NOT NULL,
    description  TEXT   NOT NULL,
    query        TEXT   NOT NULL
);

CREATE INDEX dashboard_tiles_of ON dashboard_tiles (dashboard_id, id);
