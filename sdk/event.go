package sdk

import (
	"encoding/json"
	"time"
)

// Event is one captured event as every plugin sees it and as the host keeps it.
// Its JSON form is the canonical one: the bytes that a sink is handed and that
// the file sink writes as a line. Fields are only ever added.
type Event struct {
	// UUID identifies the event for ever: retries of a request and
	// redeliveries of a batch carry the same one. Lower case, with dashes.
	UUID string `json:"uuid"`
	// ProjectID is the project whose key the event was sent with.
	ProjectID int64 `json:"project_id"`
	// Name is the event name, at most 200 characters, never empty.
	Name string `json:"event"`
	// DistinctID is who did it, at most 200 characters, never empty.
	DistinctID string `json:"distinct_id"`
	// Timestamp is when it happened, in UTC with microseconds, corrected for
	// the skew of the client's clock.
	Timestamp time.Time `json:"timestamp"`
	// ReceivedAt is when the server accepted it, in UTC with microseconds.
	ReceivedAt time.Time `json:"received_at"`
	// Properties is a JSON object, never null. Numbers keep their digits.
	Properties json.RawMessage `json:"properties"`
	// ElementsChain is the clicked element and its ancestors, or empty.
	ElementsChain string `json:"elements_chain,omitempty"`
	// PersonID is the person the event was attributed to when the host knew
	// it at the time; empty otherwise.
	PersonID string `json:"person_id,omitempty"`
}
