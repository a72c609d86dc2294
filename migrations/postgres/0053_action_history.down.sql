DROP TABLE action_history_days;
DROP TABLE action_history;
