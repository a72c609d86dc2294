-- The names of persons in the order of their bytes, in which an index finds those that begin
-- with a text. The next step removes the index of the same columns that it replaces: here
-- writers wait until the index is built, but readers do not, as they would with that removal.
CREATE INDEX persons_by_prefix ON persons (project_id, label COLLATE "C") WHERE label IS NOT NULL;
