-- Which clients get a flag, and whether persons are bucketed by their device.
-- evaluation_contexts is a JSON list of texts.
ALTER TABLE feature_flags ADD COLUMN bucketing_identifier TEXT NOT NULL DEFAULT 'distinct_id';
ALTER TABLE feature_flags ADD COLUMN evaluation_runtime TEXT NOT NULL DEFAULT 'all';
ALTER TABLE feature_flags ADD COLUMN evaluation_contexts TEXT NOT NULL DEFAULT '[]';

-- Filters of the oldest form have their rollout at the top. The derived column
-- ignored it.
UPDATE feature_flags SET fully_rolled_out = FALSE
WHERE fully_rolled_out AND filters NOT LIKE '%"groups"%' AND filters NOT LIKE '%"variants"%'
  AND filters LIKE '%"rollout_percentage":%' AND filters NOT LIKE '%"rollout_percentage":100%' AND filters NOT LIKE '%"rollout_percentage":null%';
