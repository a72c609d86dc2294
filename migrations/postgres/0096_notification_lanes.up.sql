-- Which process sends to a destination, and when the next message may go there. Times
-- are microseconds of the clock of the database.
CREATE TABLE notification_lanes (
    notifier     TEXT   NOT NULL,
    destination  TEXT   NOT NULL,
    holder       TEXT   NOT NULL DEFAULT '',
    held_until   BIGINT NOT NULL DEFAULT 0,
    paused_until BIGINT NOT NULL DEFAULT 0,
    reserved_at  BIGINT NOT NULL DEFAULT 0, -- a send within the rate of the notifier that is not used yet
    PRIMARY KEY (notifier, destination)
);

-- The next send that the rate of a notifier permits; destination is '' for a rate that
-- all destinations share.
CREATE TABLE notifier_rates (
    notifier    TEXT   NOT NULL,
    destination TEXT   NOT NULL,
    next_at     BIGINT NOT NULL,
    PRIMARY KEY (notifier, destination)
);

-- The oldest message of a destination, by the order of the queue and not by a clock.
CREATE INDEX notifications_oldest ON notifications (notifier, destination, id) WHERE state = 'waiting';
