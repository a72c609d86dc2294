DROP TABLE cluster_log;
DROP TABLE cluster_leases;
DROP TABLE cluster_nodes;
