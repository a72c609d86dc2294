-- has_encrypted_payloads: every payload in filters is encrypted with a key of the server.
ALTER TABLE feature_flags ADD COLUMN is_remote_configuration INTEGER NOT NULL DEFAULT 0;
ALTER TABLE feature_flags ADD COLUMN has_encrypted_payloads INTEGER NOT NULL DEFAULT 0;
