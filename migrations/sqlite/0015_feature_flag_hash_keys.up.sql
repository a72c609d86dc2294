-- The identifier that buckets a person for flags that must not change at login:
-- the id before the login.
CREATE TABLE feature_flag_hash_keys (
    project_id BIGINT NOT NULL,
    person_id  BIGINT NOT NULL,
    flag_key   TEXT   NOT NULL,
    hash_key   TEXT   NOT NULL,
    PRIMARY KEY (person_id, flag_key)
);

CREATE INDEX feature_flag_hash_keys_flag ON feature_flag_hash_keys (project_id, flag_key);
