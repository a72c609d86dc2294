DROP TABLE flag_stamps;
DROP TABLE feature_flag_calls;
DROP TABLE feature_flags;
