DROP TABLE event_changes;
