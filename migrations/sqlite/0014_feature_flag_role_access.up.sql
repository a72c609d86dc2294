-- Roles whose people may edit a flag although their level is only to view.
CREATE TABLE feature_flag_role_access (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    flag_id    BIGINT NOT NULL,
    role_id    TEXT   NOT NULL,
    added_at   BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    UNIQUE (flag_id, role_id)
);

CREATE INDEX feature_flag_role_access_role ON feature_flag_role_access (role_id);
