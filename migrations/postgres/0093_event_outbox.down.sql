DROP TABLE event_erasures;
DROP TABLE event_outbox_state;
DROP TABLE event_outbox_uuids;
DROP TABLE event_outbox;
