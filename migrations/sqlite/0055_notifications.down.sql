DROP TABLE notification_rates;
DROP TABLE notifications;
