package definitionfile

// Format is the name of the form, in the field format of a file.
const Format = "guidon-definitions/2"

// Kind is a kind of definitions of a project.
type Kind struct {
	Section string   // in a project of the file
	One     string   // singular, for messages
	Path    string   // of the list, below the project
	Label   string   // the field that names a definition
	Fields  []string // of the management API, which an export writes
	also    []string // further fields that a file may have
}

// Kinds lists the kinds in the order of creation: what others refer to comes first.
var Kinds = []Kind{
	{"cohorts", "cohort", "cohorts/", "name", []string{"description", "is_static", "filters"}, []string{"distinct_ids"}},
	{"dashboards", "dashboard", "dashboards/", "name", []string{"description", "tags"}, nil},
	{"flags", "flag", "feature_flags/", "key", []string{
		"name", "active", "filters", "ensure_experience_continuity", "tags", "bucketing_identifier", "evaluation_runtime",
		"evaluation_contexts", "is_remote_configuration", "rollback_conditions", "analytics_dashboards",
	}, []string{"has_enriched_analytics", "has_encrypted_payloads", "created_at", rolesField}},
	{"actions", "action", "actions/", "name", []string{"description", "tags", "steps", "post_to_chat", "chat_message_format"},
		[]string{"post_to_slack", "slack_message_format"}},
}

// rolesField of a flag lists the names of the roles that may edit it.
const rolesField = "roles"

// The other lists of a file: their fields are those of the management API, but flag of
// a scheduled change, which is the key of the flag.
var (
	groupTypeKeys = []string{"group_type", "name_singular", "name_plural"}
	scheduledKeys = []string{"flag", "scheduled_at", "payload"}
	roleKeys      = []string{"name", "feature_flags_access_level"}
)

// The names of the lists of a project that are no Kind.
const (
	sectionGroupTypes = "group_types"
	sectionScheduled  = "scheduled_changes"
)
