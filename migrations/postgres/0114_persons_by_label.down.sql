ALTER INDEX persons_by_label RENAME TO persons_by_prefix;
CREATE INDEX persons_by_label ON persons (project_id, label) WHERE label IS NOT NULL;
