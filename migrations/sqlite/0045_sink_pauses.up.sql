-- Sinks that are sent nothing until somebody resumes them. A row is a pause.
CREATE TABLE sink_pauses (
    sink TEXT PRIMARY KEY,
    paused_at BIGINT NOT NULL,
    reason TEXT NOT NULL
);
