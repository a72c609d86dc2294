-- Every state a flag was ever in, to go back to.
CREATE TABLE feature_flag_versions (
    flag_id    BIGINT NOT NULL,
    version    BIGINT NOT NULL,
    state      TEXT   NOT NULL,
    user_id    BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (flag_id, version)
);

-- Who changed what and when; the name and address stay when the user goes.
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

CREATE INDEX flag_activity_of_project ON flag_activity (project_id, scope, created_at, id);
CREATE INDEX flag_activity_of_item ON flag_activity (project_id, scope, item_id, created_at, id);
