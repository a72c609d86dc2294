-- Nodes that share a database need Postgres. The tables exist so that both dialects
-- have the same ones.
CREATE TABLE cluster_nodes (
    id         TEXT    PRIMARY KEY,
    name       TEXT    NOT NULL,
    version    TEXT    NOT NULL,
    roles      TEXT    NOT NULL,
    address    TEXT    NOT NULL,
    takes      TEXT    NOT NULL,
    draining   BOOLEAN NOT NULL,
    beat       INTEGER NOT NULL,
    started_at TEXT    NOT NULL,
    seen_at    TEXT    NOT NULL
);

CREATE TABLE cluster_leases (
    name     TEXT    PRIMARY KEY,
    node     TEXT,
    token    INTEGER NOT NULL,
    taken_at TEXT    NOT NULL
);

CREATE TABLE cluster_log (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    id  TEXT    NOT NULL
);
