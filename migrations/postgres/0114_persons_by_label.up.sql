-- Writing a person costs what it did before step 113.
DROP INDEX persons_by_label;
ALTER INDEX persons_by_prefix RENAME TO persons_by_label;
