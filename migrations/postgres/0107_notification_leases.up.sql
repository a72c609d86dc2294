-- Each process looks each second which processes have leases.
CREATE INDEX notifications_leased ON notifications (leased_until) WHERE state = 'waiting' AND leased_until > 0;
