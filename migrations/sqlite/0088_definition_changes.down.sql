DROP TABLE definition_changes;
