-- has_encrypted_payloads: every payload in filters is encrypted with a key of the server.
ALTER TABLE feature_flags ADD COLUMN is_remote_configuration BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE feature_flags ADD COLUMN has_encrypted_payloads BOOLEAN NOT NULL DEFAULT FALSE;
