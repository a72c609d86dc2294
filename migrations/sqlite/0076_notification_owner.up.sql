-- The process that leases a notification. After its end, the next start with the
-- same journal sends the notification at once.
ALTER TABLE notifications ADD COLUMN leased_by TEXT NOT NULL DEFAULT '';
