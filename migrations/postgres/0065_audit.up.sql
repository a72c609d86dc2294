-- The activity log also covers accounts, persons and plugins. project_id is 0 for
-- what belongs to no project. key_id is the personal key and client the address of
-- the request.
ALTER TABLE activity_log ADD COLUMN organization_id TEXT NOT NULL DEFAULT '';
ALTER TABLE activity_log ADD COLUMN key_id BIGINT NOT NULL DEFAULT 0;
ALTER TABLE activity_log ADD COLUMN client TEXT NOT NULL DEFAULT '';

UPDATE activity_log SET organization_id = coalesce((SELECT CAST(p.organization_id AS TEXT) FROM projects AS p WHERE p.id = activity_log.project_id), '');

CREATE INDEX activity_log_by_organization ON activity_log (organization_id, created_at, id);
CREATE INDEX activity_log_by_project ON activity_log (project_id, created_at, id);
CREATE INDEX activity_log_by_age ON activity_log (created_at);
