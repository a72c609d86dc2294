-- Requested replays: replay_waiting until the server has
-- tried, replay_error why the last try did not succeed. Asking is a row in the
-- database, so the API and the command line can both do it, and a request
-- outlives a crash.
ALTER TABLE dead_letters ADD COLUMN replay_requested_at BIGINT;
ALTER TABLE dead_letters ADD COLUMN replay_waiting BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE dead_letters ADD COLUMN replay_error TEXT NOT NULL DEFAULT '';

CREATE INDEX dead_letters_waiting ON dead_letters (source, id) WHERE replay_waiting;
