ALTER TABLE feature_flags DROP COLUMN evaluation_contexts;
ALTER TABLE feature_flags DROP COLUMN evaluation_runtime;
ALTER TABLE feature_flags DROP COLUMN bucketing_identifier;
