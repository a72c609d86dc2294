-- A secret key of a project, by which server-side clients read the definitions of flags: only its
-- SHA-256 is stored. kind is named, or active or backup for the one rotating secret of the project.
-- scopes is a JSON array. Times are unix microseconds.
CREATE TABLE secret_keys (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    project_id   INTEGER NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    kind         TEXT NOT NULL,
    label        TEXT NOT NULL,
    hash         TEXT NOT NULL UNIQUE,
    mask         TEXT NOT NULL,
    scopes       TEXT NOT NULL,
    created_by   INTEGER REFERENCES users (id) ON DELETE SET NULL,
    created_at   INTEGER NOT NULL,
    last_used_at INTEGER,
    expires_at   INTEGER,
    rolled_at    INTEGER,
    revoked_at   INTEGER
);
CREATE INDEX secret_keys_project ON secret_keys (project_id);
