package event

// Kinds of notices: first those of dropped events, then those of changed ones. They
// are the types of ingestion warnings in the API, so none is ever renamed.
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
	KindCookieless          = "cookieless_visitor_not_told_apart"
)

// Notice tells a project that one of its events was dropped or changed. The
// pipeline turns notices into metrics and ingestion warnings.
type Notice struct {
	// Index is the index of the event in the request, from 0.
	Index uint32
	// Kind is one of the Kind constants.
	Kind string
	// Dropped means the event is not among the decoded ones.
	Dropped bool
	// EventName, EventUUID and DistinctID are empty if unknown.
	EventName, EventUUID, DistinctID string
	// Detail holds further details, by name.
	Detail map[string]any
	// More counts further notices of this kind in the request. Decoder.LimitNotices
	// bounds the listed ones, so that a request of millions of invalid items costs
	// no more memory than its bytes.
	More uint32
}

// Quiet reports whether the notice is counted without a warning. The original
// implementation drops these events, too, and no client can avoid it.
func (n *Notice) Quiet() bool { return n.Kind == KindPerformanceEvent }
