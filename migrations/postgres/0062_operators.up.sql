-- Operators administer the server itself: its plugins and its configuration.
-- Owners of the first organization had this right through their keys; they keep it.
ALTER TABLE users ADD COLUMN operator BOOLEAN NOT NULL DEFAULT FALSE;

UPDATE users SET operator = TRUE WHERE id IN (
    SELECT m.user_id FROM organization_members AS m
    WHERE m.level = 15 AND m.organization_id = (SELECT o.id FROM organizations AS o ORDER BY o.created_at, o.id LIMIT 1)
);
