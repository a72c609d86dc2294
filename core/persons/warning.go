package persons

// Warning tells the owners of a project that an event did not have the effect
// on persons or groups that it asked for. The event itself is stored.
// Ingestion keeps and shows warnings.
type Warning struct {
	ProjectID int64
	Type      string         // one of the Warn constants
	Details   map[string]any // for people; encodes as a JSON object
	EventUUID string
}

// The types of warning this room gives.
const (
	// A merge was asked with an id that cannot stand for one person.
	WarnIllegalDistinctID = "cannot_merge_with_illegal_distinct_id"
	// A merge would have swallowed a person that is already identified.
	WarnAlreadyIdentified = "cannot_merge_already_identified"
	// A person's properties came over the size limit: some were left out, or
	// the whole update was refused.
	WarnPersonSize = "person_properties_size_violation"
	// A group's properties came over the size limit; the update was refused.
	WarnGroupSize = "group_upsert_message_size_too_large"
	// $set and its kin on an event that never updates persons.
	WarnUpdateIgnored = "person_update_ignored"
)

func (f *fact) warn(kind string, details map[string]any) Warning {
	if details == nil {
		details = make(map[string]any, 3)
	}
	details["eventUuid"] = f.ev.UUID
	details["event"] = f.ev.Name
	details["distinctId"] = f.ev.DistinctID
	return Warning{ProjectID: f.ev.ProjectID, Type: kind, Details: details, EventUUID: f.ev.UUID}
}
