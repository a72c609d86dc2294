package transfer

// copied are the tables that are copied, those that others refer to before them. A test
// compares the list with the schema: a migration that adds a table names it here or in
// LeftOut.
var copied = []string{
	"organizations", "projects", "users", "organization_members", "roles", "role_members",
	"project_keys", "personal_keys", "secret_keys", "invitations", "accounts_version",
	"sessions", "user_passwords", "sign_in_links", "user_identities",

	"feature_flags", "feature_flag_versions", "feature_flag_calls", "feature_flag_role_access", "flag_stamps", "scheduled_changes",
	"cohorts", "cohort_members", "definition_changes", "dashboards", "dashboard_tiles",
	"changes", "change_revisions",

	"persons", "person_distinct_ids", "lone_distinct_ids", "feature_flag_hash_keys", "group_types", "project_groups",
	"erasures", "erased_ids", "erasure_key", "cookieless_salts",

	"actions", "action_stamps", "action_history", "action_history_days",
	"notifications", "notification_rates", "notification_lanes", "notifier_rates",

	"definitions", "event_retention", "event_retention_runs", "event_changes",
	"dead_letters", "sink_pauses", "ingestion_warnings", "ingestion_usage",
	"activity_log", "activity_chain", "plugin_configs",

	"events", "ingestion_cursors", "event_logs", "log_cursors",
}

// seeded are the tables in which migrations insert rows. The rows of the source replace
// them. The value is a condition that is true for the rows of a database that no server
// has used.
var seeded = map[string]string{
	"accounts_version": "version = 1",
	"activity_chain":   "sequence = 0 AND cut_sequence = 0",
	"erasure_key":      "TRUE",
}

// leftOut are the tables that are not copied, with the reason.
var leftOut = map[string]string{
	"schema_migrations":  "the target has its own; both must have the same steps",
	"event_outbox":       "events on their way to ClickHouse; both must have none",
	"event_outbox_uuids": "the uuids of event_outbox",
	"event_outbox_state": "the target has its own rows of events",
	"event_insertion":    "the target has its own rows of events",
	"event_erasures":     "erasures that ClickHouse has not finished",
	"cluster_nodes":      "they name processes that use the source",
	"cluster_leases":     "they name processes that use the source",
	"cluster_log":        "the target may have another log",
	"erasure_scans":      "they save reading a log again; the target may have another one",
	"log_store":          "requests on their way: the source has none unread, and the target begins its own log",
	"log_segments":       "the tables of the requests of log_store",
	"log_batches":        "the requests of log_store",
	"event_dictionaries": "events are copied as text, which PostgreSQL compresses itself",
}

// Copied returns the names of the tables that a transfer copies, in their order.
func Copied() []string { return append([]string(nil), copied...) }

// LeftOut returns the reason by the name of the tables that a transfer does not copy.
func LeftOut() map[string]string {
	out := make(map[string]string, len(leftOut))
	for name, reason := range leftOut {
		out[name] = reason
	}
	return out
}
