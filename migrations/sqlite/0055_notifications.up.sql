-- Messages to chat, from when they are written to when they are forgotten. key
-- names a message for ever: destination, action and event. state is waiting,
-- delivered, failed or expired; leased_until is until when a process has it.
CREATE TABLE notifications (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    project_id   BIGINT  NOT NULL,
    action_id    BIGINT  NOT NULL,
    notifier     TEXT    NOT NULL,
    destination  TEXT    NOT NULL,
    key          TEXT    NOT NULL UNIQUE,
    event_uuid   TEXT    NOT NULL,
    text         TEXT    NOT NULL,
    message      TEXT    NOT NULL,
    suppressed   BIGINT  NOT NULL,
    state        TEXT    NOT NULL,
    attempts     BIGINT  NOT NULL,
    next_at      BIGINT  NOT NULL,
    leased_until BIGINT  NOT NULL,
    created_at   BIGINT  NOT NULL,
    expires_at   BIGINT  NOT NULL,
    settled_at   BIGINT,
    message_id   TEXT    NOT NULL,
    error_code   TEXT    NOT NULL,
    error        TEXT    NOT NULL
);

CREATE INDEX notifications_waiting ON notifications (notifier, destination, next_at, id) WHERE state = 'waiting';
CREATE INDEX notifications_action ON notifications (project_id, action_id, id);
CREATE INDEX notifications_settled ON notifications (settled_at) WHERE settled_at IS NOT NULL;

-- How fast messages of an action go to a destination, by their words: what may go at once, since
-- when, and what was left out since the last one, the latest of it kept.
CREATE TABLE notification_rates (
    action_id   BIGINT NOT NULL,
    notifier    TEXT   NOT NULL,
    destination TEXT   NOT NULL,
    format      TEXT   NOT NULL, -- a hash of the words for that destination; empty for the action's
    project_id  BIGINT NOT NULL,
    tokens      DOUBLE PRECISION NOT NULL,
    at          BIGINT NOT NULL,
    suppressed  BIGINT NOT NULL,
    due_at      BIGINT NOT NULL,
    key         TEXT   NOT NULL,
    event_uuid  TEXT   NOT NULL,
    message     TEXT   NOT NULL,
    PRIMARY KEY (action_id, notifier, destination, format)
);

CREATE INDEX notification_rates_due ON notification_rates (due_at) WHERE suppressed > 0;
