DROP TABLE action_activity;
DROP TABLE action_stamps;
DROP TABLE actions;
