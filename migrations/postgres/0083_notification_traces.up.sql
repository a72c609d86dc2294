ALTER TABLE notifications ADD COLUMN trace text NOT NULL DEFAULT '';
