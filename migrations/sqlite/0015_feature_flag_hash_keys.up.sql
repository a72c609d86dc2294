-- Under which identifier a person is bucketed for flags that must not change
-- when somebody logs in: the id they had before.
CREATE TABLE feature_flag_hash_keys (
    project_id BIGINT NOT NULL,
    person_id  BIGINT NOT NULL,
    flag_key   TEXT   NOT NULL,
    hash_key   TEXT   NOT NULL,
    PRIMARY KEY (person_id, flag_key)
);

CREATE INDEX feature_flag_hash_keys_flag ON feature_flag_hash_keys (project_id, flag_key);
