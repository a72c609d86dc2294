ALTER TABLE personal_keys DROP COLUMN expires_at;
