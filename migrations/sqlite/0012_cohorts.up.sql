-- Groups of people. filters is {"properties": nested AND and OR groups} of a
-- dynamic cohort; a static one has its people in cohort_members. people and
-- calculated_at are the last count.
CREATE TABLE cohorts (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    project_id    BIGINT  NOT NULL,
    name          TEXT    NOT NULL,
    description   TEXT    NOT NULL,
    filters       TEXT    NOT NULL,
    is_static     BOOLEAN NOT NULL,
    deleted       BOOLEAN NOT NULL,
    created_by    BIGINT  NOT NULL,
    created_at    BIGINT  NOT NULL,
    updated_at    BIGINT  NOT NULL,
    version       BIGINT  NOT NULL,
    people        BIGINT,
    calculated_at BIGINT
);

CREATE INDEX cohorts_newest ON cohorts (project_id, deleted, created_at, id);

-- Listed members by distinct id, which stays with the person in a merge.
CREATE TABLE cohort_members (
    project_id  BIGINT NOT NULL,
    distinct_id TEXT   NOT NULL,
    cohort_id   BIGINT NOT NULL,
    PRIMARY KEY (project_id, distinct_id, cohort_id)
);

CREATE INDEX cohort_members_of ON cohort_members (cohort_id, distinct_id);
