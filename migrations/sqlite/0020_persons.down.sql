DROP TABLE project_groups;
DROP TABLE group_types;
DROP TABLE lone_distinct_ids;
DROP TABLE person_distinct_ids;
DROP TABLE persons;
