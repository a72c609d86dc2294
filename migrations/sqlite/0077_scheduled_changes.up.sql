-- Changes of flags at a time in the future. A row is open until executed_at is set,
-- in the transaction of the change or with the reason of its failure.
CREATE TABLE scheduled_changes (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    project_id     BIGINT  NOT NULL,
    flag_id        BIGINT  NOT NULL,
    payload        TEXT    NOT NULL, -- a JSON object: operation and value
    scheduled_at   BIGINT  NOT NULL,
    executed_at    BIGINT,
    failure_reason TEXT,
    created_by     BIGINT  NOT NULL,
    created_at     BIGINT  NOT NULL,
    updated_at     BIGINT  NOT NULL
);
CREATE INDEX scheduled_changes_due ON scheduled_changes (scheduled_at) WHERE executed_at IS NULL;
CREATE INDEX scheduled_changes_by_flag ON scheduled_changes (project_id, flag_id);
