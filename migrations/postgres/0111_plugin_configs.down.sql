DROP TABLE plugin_configs;
