-- A plugin instance that operators have configured with the API. In config a fixed text
-- stands for each secret; secrets has them, encrypted by the server. Times are unix
-- microseconds.
CREATE TABLE plugin_configs (
    name       TEXT    PRIMARY KEY,
    plugin     TEXT    NOT NULL,
    kind       TEXT    NOT NULL,
    config     TEXT    NOT NULL,
    secrets    TEXT    NOT NULL DEFAULT '',
    version    INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    updated_by TEXT    NOT NULL DEFAULT ''
);
