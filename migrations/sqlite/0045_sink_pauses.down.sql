DROP TABLE sink_pauses;
