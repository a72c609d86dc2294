-- How many events a project with a quota has sent, and how many of them were
-- not taken: one row a period, which is named by its first second.
CREATE TABLE ingestion_usage (
    project_id BIGINT NOT NULL,
    period     BIGINT NOT NULL,
    events     BIGINT NOT NULL,
    refused    BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (project_id, period)
);

CREATE INDEX ingestion_usage_period ON ingestion_usage (period);
