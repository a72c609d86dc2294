-- A session of a browser. Only the SHA-256 of its token is stored. last_seen_at is exact to a
-- minute. Times are unix microseconds.
CREATE TABLE sessions (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    hash            TEXT    NOT NULL UNIQUE,
    user_id         INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    organization_id TEXT    REFERENCES organizations (id) ON DELETE SET NULL,
    method          TEXT    NOT NULL,
    user_agent      TEXT    NOT NULL DEFAULT '',
    client          TEXT    NOT NULL DEFAULT '',
    created_at      INTEGER NOT NULL,
    last_seen_at    INTEGER NOT NULL,
    expires_at      INTEGER NOT NULL,
    revoked_at      INTEGER
);
CREATE INDEX sessions_user ON sessions (user_id);

-- The password of a user, as an argon2id hash with its parameters.
CREATE TABLE user_passwords (
    user_id    INTEGER PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
    hash       TEXT    NOT NULL,
    changed_at INTEGER NOT NULL
);

-- A link that signs a user in once (kind link), or lets the user choose a password once (kind
-- reset). Only the SHA-256 of its token is stored.
CREATE TABLE sign_in_links (
    hash       TEXT    PRIMARY KEY,
    user_id    INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    kind       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    used_at    INTEGER
);
CREATE INDEX sign_in_links_user ON sign_in_links (user_id);

-- The account of a user at an OpenID Connect provider.
CREATE TABLE user_identities (
    issuer     TEXT    NOT NULL,
    subject    TEXT    NOT NULL,
    user_id    INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (issuer, subject)
);
CREATE INDEX user_identities_user ON user_identities (user_id);
