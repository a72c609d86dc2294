DROP INDEX notifications_oldest;
DROP TABLE notifier_rates;
DROP TABLE notification_lanes;
