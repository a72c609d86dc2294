-- The index of names has the order of bytes here already: the step changes Postgres only.
SELECT 1;
