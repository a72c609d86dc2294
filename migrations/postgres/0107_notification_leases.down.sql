DROP INDEX notifications_leased;
