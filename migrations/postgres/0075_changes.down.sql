DROP TABLE changes;
DROP TABLE change_revisions;
