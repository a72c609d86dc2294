package event

import (
	"encoding/json"
	"fmt"
	"time"
)

// erasureKind is the first byte of a journal record that holds an Erasure instead
// of a request. A binary that does not know the kind reports the record as
// unreadable and goes on behind it.
const erasureKind = 'E'

// Erasure is a journal record about a person that was deleted. The data of the
// distinct ids in records before it must not come back.
type Erasure struct {
	ID          string    `json:"id"` // uuid of the erasure
	ProjectID   int64     `json:"project_id"`
	DistinctIDs []string  `json:"distinct_ids"`
	Events      bool      `json:"events"` // the events are deleted, too
	At          time.Time `json:"at"`
}

// IsErasure reports whether a journal record holds an Erasure.
func IsErasure(data []byte) bool { return len(data) > 0 && data[0] == erasureKind }

// Append appends the bytes of the journal record to dst.
func (e *Erasure) Append(dst []byte) ([]byte, error) {
	body, err := json.Marshal(e)
	if err != nil {
		return dst, fmt.Errorf("encode erasure: %w", err)
	}
	return append(append(dst, erasureKind), body...), nil
}

// ParseErasure parses the bytes of Erasure.Append. It fails with ErrRecord.
func ParseErasure(data []byte) (Erasure, error) {
	var e Erasure
	if !IsErasure(data) {
		return e, fmt.Errorf("%w: not an erasure", ErrRecord)
	}
	if err := json.Unmarshal(data[1:], &e); err != nil {
		return e, fmt.Errorf("%w: %w", ErrRecord, err)
	}
	if e.ID == "" || e.ProjectID == 0 {
		return e, fmt.Errorf("%w: an erasure without id or project", ErrRecord)
	}
	return e, nil
}
