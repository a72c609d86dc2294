ALTER TABLE feature_flags DROP COLUMN has_encrypted_payloads;
ALTER TABLE feature_flags DROP COLUMN is_remote_configuration;
