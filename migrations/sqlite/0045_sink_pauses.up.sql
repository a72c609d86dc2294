-- Sinks that receive no events until they are resumed. A row is a pause.
CREATE TABLE sink_pauses (
    sink TEXT PRIMARY KEY,
    paused_at BIGINT NOT NULL,
    reason TEXT NOT NULL
);
