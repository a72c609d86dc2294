-- Unix microseconds after which a personal key is refused; NULL for a key without an end.
ALTER TABLE personal_keys ADD COLUMN expires_at BIGINT;
