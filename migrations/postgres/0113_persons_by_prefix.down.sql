DROP INDEX persons_by_prefix;
