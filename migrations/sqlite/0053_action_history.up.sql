-- What was counted of the history for an action: a line for the action, and
-- for each day in UTC the number of events in each quarter of an hour. last_row is
-- the last row of events that was looked at, fingerprint the definition that
-- was counted, serial grows with each change of the line.

CREATE TABLE action_history (
    action_id     INTEGER PRIMARY KEY,
    project_id    INTEGER NOT NULL,
    serial        INTEGER NOT NULL,
    fingerprint   TEXT    NOT NULL,
    erased        INTEGER NOT NULL,
    last_row      INTEGER NOT NULL,
    undecided     INTEGER NOT NULL,
    calculated_at INTEGER NOT NULL, -- 0: not yet
    asked_at      INTEGER NOT NULL
);
CREATE INDEX action_history_asked ON action_history (asked_at);

CREATE TABLE action_history_days (
    action_id INTEGER NOT NULL,
    day       INTEGER NOT NULL, -- days since 1970
    last_row  INTEGER NOT NULL,
    counts    BLOB    NOT NULL, -- up to 96 varints
    PRIMARY KEY (action_id, day)
) WITHOUT ROWID;
