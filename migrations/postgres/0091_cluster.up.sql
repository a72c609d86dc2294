-- The nodes that share the database, and the leases that say which node does what.
-- beat changes while the node works. seen_at is for operators and the removal of rows.
CREATE TABLE cluster_nodes (
    id         TEXT        PRIMARY KEY,
    name       TEXT        NOT NULL,
    version    TEXT        NOT NULL,
    roles      TEXT[]      NOT NULL,
    address    TEXT        NOT NULL,
    takes      TEXT[]      NOT NULL, -- the groups that it takes numbers of
    draining   BOOLEAN     NOT NULL,
    beat       BIGINT      NOT NULL,
    started_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    seen_at    TIMESTAMPTZ NOT NULL DEFAULT now()
);

CREATE TABLE cluster_leases (
    name     TEXT        PRIMARY KEY,
    node     TEXT, -- null while it is free
    token    BIGINT      NOT NULL, -- increases with each owner
    taken_at TIMESTAMPTZ NOT NULL DEFAULT now()
);

-- The log that the nodes share: one row.
CREATE TABLE cluster_log (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    id  TEXT    NOT NULL
);
