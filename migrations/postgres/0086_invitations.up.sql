-- An invitation makes a user once. Only the SHA-256 of its token is stored. scopes is
-- a JSON array: the personal key of the new user may do what the key of the inviter may.
CREATE TABLE invitations (
    id              TEXT    PRIMARY KEY,
    organization_id TEXT    NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    email           TEXT    NOT NULL,
    first_name      TEXT    NOT NULL DEFAULT '',
    level           INTEGER NOT NULL,
    hash            TEXT    NOT NULL,
    scopes          TEXT    NOT NULL,
    created_by      BIGINT  REFERENCES users (id) ON DELETE SET NULL,
    created_at      BIGINT  NOT NULL,
    expires_at      BIGINT  NOT NULL,
    used_at         BIGINT 
);
CREATE INDEX invitations_organization ON invitations (organization_id, created_at);
