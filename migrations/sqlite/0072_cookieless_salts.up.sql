-- The salts from which the ids of visitors without cookies derive, one for each
-- calendar day. Deleting a salt makes its ids impossible to trace back.
CREATE TABLE cookieless_salts (
    day  TEXT NOT NULL PRIMARY KEY, -- 2026-01-31
    salt BLOB NOT NULL
);
