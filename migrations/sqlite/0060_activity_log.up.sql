-- One activity log for all features. detail is JSON; the name and address of the
-- user stay when the user is removed.
CREATE TABLE activity_log (
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

INSERT INTO activity_log (id, project_id, scope, item_id, activity, user_id, user_name, user_email, detail, created_at)
SELECT id, project_id, scope, item_id, activity, user_id, user_name, user_email, detail, created_at FROM flag_activity;

INSERT INTO activity_log (id, project_id, scope, item_id, activity, user_id, user_name, user_email, detail, created_at)
SELECT id, project_id, 'Action', CAST(action_id AS TEXT), activity, user_id, user_name, user_email, detail, created_at FROM action_activity;

DROP TABLE flag_activity;
DROP TABLE action_activity;

CREATE INDEX activity_log_by_scope ON activity_log (project_id, scope, created_at, id);
CREATE INDEX activity_log_by_item ON activity_log (project_id, scope, item_id, created_at, id);
