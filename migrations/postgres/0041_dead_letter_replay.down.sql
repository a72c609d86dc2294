DROP INDEX dead_letters_waiting;
ALTER TABLE dead_letters DROP COLUMN replay_error;
ALTER TABLE dead_letters DROP COLUMN replay_waiting;
ALTER TABLE dead_letters DROP COLUMN replay_requested_at;
