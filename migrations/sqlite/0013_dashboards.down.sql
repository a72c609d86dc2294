DROP TABLE dashboard_tiles;
DROP TABLE dashboards;
