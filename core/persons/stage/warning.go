package stage

// Warning reports to the owners of a project that an event did not have the
// requested effect on persons or groups. The event itself is stored. Ingestion
// stores and shows warnings.
type Warning struct {
	ProjectID int64
	Type      string         // one of the Warn constants
	Details   map[string]any // for display; encodes as a JSON object
	EventUUID string
}

// The types of warnings.
const (
	// WarnIllegalDistinctID: a merge with an id that cannot stand for one person.
	WarnIllegalDistinctID = "cannot_merge_with_illegal_distinct_id"
	// WarnAlreadyIdentified: a merge of a person that is already identified.
	WarnAlreadyIdentified = "cannot_merge_already_identified"
	// WarnPersonSize: person properties above the size limit were dropped, or
	// the whole update was rejected.
	WarnPersonSize = "person_properties_size_violation"
	// WarnGroupSize: an update to group properties above the size limit was
	// rejected.
	WarnGroupSize = "group_upsert_message_size_too_large"
	// WarnGroupType: the project has no free index for a new group type, or its
	// name is too long; the group was ignored.
	WarnGroupType = "group_type_ignored"
	// WarnUpdateIgnored: $set, $set_once or $unset on an event that never
	// updates persons.
	WarnUpdateIgnored = "person_update_ignored"
)

func (f *parsedEvent) warn(kind string, details map[string]any) Warning {
	if details == nil {
		details = make(map[string]any, 3)
	}
	details["eventUuid"] = f.ev.UUID
	details["event"] = f.ev.Name
	details["distinctId"] = f.ev.DistinctID
	return Warning{ProjectID: f.ev.ProjectID, Type: kind, Details: details, EventUUID: f.ev.UUID}
}
