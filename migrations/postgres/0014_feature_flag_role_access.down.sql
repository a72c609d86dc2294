DROP TABLE feature_flag_role_access;
