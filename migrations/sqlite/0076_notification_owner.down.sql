ALTER TABLE notifications DROP COLUMN leased_by;
