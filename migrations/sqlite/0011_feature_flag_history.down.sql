DROP TABLE flag_activity;
DROP TABLE feature_flag_versions;
