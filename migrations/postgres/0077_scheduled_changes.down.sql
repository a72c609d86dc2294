DROP TABLE scheduled_changes;
