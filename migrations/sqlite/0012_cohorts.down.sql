DROP TABLE cohort_members;
DROP TABLE cohorts;
