-- Flags. filters, tags and analytics_dashboards are JSON texts, kept as text so
-- that unknown names and the digits of numbers come back as sent. The key of a
-- deleted flag becomes <key>:deleted:<id> when another flag takes the key.
-- search, multivariate and fully_rolled_out are derived from the row, for lists.
CREATE TABLE feature_flags (
    id                    INTEGER PRIMARY KEY AUTOINCREMENT,
    project_id            BIGINT  NOT NULL,
    key                   TEXT    NOT NULL,
    name                  TEXT    NOT NULL,
    filters               TEXT    NOT NULL,
    active                BOOLEAN NOT NULL,
    deleted               BOOLEAN NOT NULL,
    created_by            BIGINT  NOT NULL,
    created_at            BIGINT  NOT NULL,
    updated_by            BIGINT  NOT NULL,
    updated_at            BIGINT  NOT NULL,
    version               BIGINT  NOT NULL,
    experience_continuity BOOLEAN NOT NULL,
    rollback_conditions   TEXT,
    performed_rollback    BOOLEAN,
    tags                  TEXT    NOT NULL,
    usage_dashboard       BIGINT  NOT NULL,
    analytics_dashboards  TEXT    NOT NULL,
    enriched_analytics    BOOLEAN NOT NULL,
    search                TEXT    NOT NULL,
    multivariate          BOOLEAN NOT NULL,
    fully_rolled_out      BOOLEAN NOT NULL,
    UNIQUE (project_id, key)
);

CREATE INDEX feature_flags_newest ON feature_flags (project_id, deleted, created_at, id);

-- When clients last reported that they asked for a flag.
CREATE TABLE feature_flag_calls (
    flag_id        BIGINT PRIMARY KEY,
    last_called_at BIGINT NOT NULL
);

-- One number a project, another one after each write to what its flags are
-- decided from. Its row is also the lock that orders these writes.
CREATE TABLE flag_stamps (
    project_id BIGINT PRIMARY KEY,
    stamp      BIGINT NOT NULL
);
