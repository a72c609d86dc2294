-- What became of the e-mail with an invitation: queued, sent or failed; empty: none was
-- queued.
ALTER TABLE invitations ADD COLUMN email_state TEXT NOT NULL DEFAULT '';
