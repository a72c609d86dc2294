DROP INDEX activity_log_by_age;
DROP INDEX activity_log_by_project;
DROP INDEX activity_log_by_organization;
DELETE FROM activity_log WHERE scope NOT IN ('FeatureFlag', 'Cohort', 'Action');
ALTER TABLE activity_log DROP COLUMN client;
ALTER TABLE activity_log DROP COLUMN key_id;
ALTER TABLE activity_log DROP COLUMN organization_id;
