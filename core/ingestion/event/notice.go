package event

// Kinds of notices. The first group are events that were not ingested, the
// second events that were kept but changed. They are the types of the
// ingestion warnings a project can read, so they are only ever added to.
const (
	KindNotAnObject         = "skipping_event_not_an_object"
	KindEmptyEvent          = "skipping_event_empty"
	KindMissingName         = "skipping_event_missing_event_name"
	KindInvalidDistinctID   = "skipping_event_invalid_distinct_id"
	KindInvalidProperties   = "skipping_event_invalid_properties"
	KindTooLarge            = "message_size_too_large"
	KindTooDeep             = "skipping_event_nested_too_deep"
	KindTooManyProperties   = "skipping_event_too_many_properties"
	KindPersonlessIdentify  = "invalid_event_when_process_person_profile_is_false"
	KindGroupKeyTooLong     = "group_key_too_long"
	KindInvalidGroupSet     = "skipping_event_invalid_group_set"
	KindClientWarning       = "client_ingestion_warning"
	KindPerformanceEvent    = "dropped_performance_event"
	KindUnreadableRecord    = "unreadable_record"
	KindInvalidEventTime    = "invalid_event_timestamp"
	KindNameTooLong         = "event_name_too_long"
	KindDistinctIDTooLong   = "distinct_id_too_long"
	KindInvalidUUID         = "replaced_invalid_event_uuid"
	KindInvalidTimestamp    = "ignored_invalid_timestamp"
	KindFutureTimestamp     = "event_timestamp_in_future"
	KindInvalidSet          = "ignored_invalid_set"
	KindInvalidPersonSwitch = "invalid_process_person_profile"
)

// Notice is one thing a project should know about an event it sent: it was
// dropped, or kept with a change. Decode returns them; the worker turns them
// into metrics and ingestion warnings.
type Notice struct {
	// Index is the event's place in the request, from 0.
	Index uint32
	// Kind is one of the Kind constants.
	Kind string
	// Dropped means the event is not among the decoded ones.
	Dropped bool
	// EventName, EventUUID and DistinctID are as far as they are known.
	EventName, EventUUID, DistinctID string
	// Detail holds what else helps, by name.
	Detail map[string]any
	// More is for how many further items of the request the same is true: the
	// readers of the journal list only the first of a kind one by one, so that
	// a request of millions of useless items costs no more memory than its bytes.
	More uint32
}

// Quiet reports whether the notice is counted but not worth a warning: the
// reference drops these everywhere, on purpose, and no client can help it.
func (n *Notice) Quiet() bool { return n.Kind == KindPerformanceEvent }
