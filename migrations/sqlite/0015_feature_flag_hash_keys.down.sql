DROP TABLE feature_flag_hash_keys;
