CREATE TABLE flag_activity (
    id         TEXT   PRIMARY KEY,
    project_id BIGINT NOT NULL,
    scope      TEXT   NOT NULL,
    item_id    TEXT   NOT NULL,
    activity   TEXT   NOT NULL,
    user_id    BIGINT NOT NULL,
    user_name  TEXT   NOT NULL,
    user_email TEXT   NOT NULL,
    detail     TEXT   NOT NULL,
    created_at BIGINT NOT NULL
);

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

-- Entries of other scopes stay with the flags, whose table has the column.
INSERT INTO flag_activity (id, project_id, scope, item_id, activity, user_id, user_name, user_email, detail, created_at)
SELECT id, project_id, scope, item_id, activity, user_id, user_name, user_email, detail, created_at FROM activity_log WHERE scope <> 'Action';

INSERT INTO action_activity (id, project_id, action_id, activity, user_id, user_name, user_email, detail, created_at)
SELECT id, project_id, CAST(item_id AS BIGINT), activity, user_id, user_name, user_email, detail, created_at FROM activity_log WHERE scope = 'Action';

DROP TABLE activity_log;

CREATE INDEX flag_activity_of_project ON flag_activity (project_id, scope, created_at, id);
CREATE INDEX flag_activity_of_item ON flag_activity (project_id, scope, item_id, created_at, id);
CREATE INDEX action_activity_project ON action_activity (project_id, created_at, id);
CREATE INDEX action_activity_action ON action_activity (action_id, created_at, id);
