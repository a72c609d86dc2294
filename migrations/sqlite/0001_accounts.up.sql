-- Who may do what: organizations, their people, projects, keys and roles.
-- Times are unix microseconds everywhere.

CREATE TABLE organizations (
    id                         TEXT    PRIMARY KEY,
    name                       TEXT    NOT NULL,
    feature_flags_access_level INTEGER NOT NULL DEFAULT 37,
    created_at                 INTEGER NOT NULL,
    updated_at                 INTEGER NOT NULL
);

CREATE TABLE projects (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id TEXT    NOT NULL REFERENCES organizations (id),
    name            TEXT    NOT NULL,
    timezone        TEXT    NOT NULL DEFAULT 'UTC',
    anonymize_ips   BOOLEAN NOT NULL DEFAULT FALSE,
    settings        TEXT    NOT NULL DEFAULT '{}',
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    revoked_at      INTEGER
);
CREATE INDEX projects_organization ON projects (organization_id);

CREATE TABLE users (
    id                      INTEGER PRIMARY KEY AUTOINCREMENT,
    uuid                    TEXT    NOT NULL UNIQUE,
    distinct_id             TEXT    NOT NULL UNIQUE,
    first_name              TEXT    NOT NULL DEFAULT '',
    email                   TEXT    NOT NULL UNIQUE,
    is_email_verified       BOOLEAN NOT NULL DEFAULT FALSE,
    current_organization_id TEXT    REFERENCES organizations (id),
    current_project_id      INTEGER REFERENCES projects (id),
    created_at              INTEGER NOT NULL,
    revoked_at              INTEGER
);

CREATE TABLE organization_members (
    organization_id TEXT    NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    user_id         INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    level           INTEGER NOT NULL,
    joined_at       INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    PRIMARY KEY (organization_id, user_id)
);
CREATE INDEX organization_members_user ON organization_members (user_id);

-- A project key is public by nature: it sits in every web page. It is stored as it is.
CREATE TABLE project_keys (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    project_id INTEGER NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    key        TEXT    NOT NULL UNIQUE,
    label      TEXT    NOT NULL DEFAULT '',
    created_by INTEGER REFERENCES users (id) ON DELETE SET NULL,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER
);
CREATE INDEX project_keys_project ON project_keys (project_id);

-- A personal key is a secret: only its SHA-256 is stored. scopes and
-- project_ids are JSON arrays; no project ids means every project of the organization.
CREATE TABLE personal_keys (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id         INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    organization_id TEXT    NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    label           TEXT    NOT NULL,
    hash            TEXT    NOT NULL UNIQUE,
    mask            TEXT    NOT NULL,
    scopes          TEXT    NOT NULL,
    project_ids     TEXT    NOT NULL DEFAULT '[]',
    created_at      INTEGER NOT NULL,
    last_used_at    INTEGER,
    revoked_at      INTEGER
);
CREATE INDEX personal_keys_user ON personal_keys (user_id);

CREATE TABLE roles (
    id                         TEXT    PRIMARY KEY,
    organization_id            TEXT    NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    name                       TEXT    NOT NULL,
    feature_flags_access_level INTEGER NOT NULL,
    created_by                 INTEGER REFERENCES users (id) ON DELETE SET NULL,
    created_at                 INTEGER NOT NULL,
    updated_at                 INTEGER NOT NULL,
    UNIQUE (organization_id, name)
);

CREATE TABLE role_members (
    id         TEXT    PRIMARY KEY,
    role_id    TEXT    NOT NULL REFERENCES roles (id) ON DELETE CASCADE,
    user_id    INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    joined_at  INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (role_id, user_id)
);
CREATE INDEX role_members_user ON role_members (user_id);

-- One row whose version grows with every change above, in the same transaction,
-- so that each process learns by one small read whether its memory is current.
CREATE TABLE accounts_version (
    id      INTEGER PRIMARY KEY CHECK (id = 1),
    version INTEGER NOT NULL
);
INSERT INTO accounts_version (id, version) VALUES (1, 1);
