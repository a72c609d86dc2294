ALTER TABLE invitations DROP COLUMN email_state;
