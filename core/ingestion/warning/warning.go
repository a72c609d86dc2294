// Package warning keeps ingestion warnings: a project reads in them that an
// event it sent was dropped or changed.
//
// Warnings are sampled. Each project, type, key and hour has one row with a
// count and the latest case, and a project has at most 1,000 keys per hour, so
// that a broken client costs a bounded number of rows.
//
// The pipeline collects the warnings of a batch and writes them in the
// transaction of the batch: a batch that is rolled back leaves none. Capture
// writes one row per project whose events are over quota.
package warning

import (
	"encoding/json"
	"time"

	"github.com/guidonhq/guidon/core/db"
)

// Warning tells a project that an event had less effect than intended, or none.
type Warning struct {
	ProjectID int64
	Type      string
	// Key separates cases of one type, such as the name of the event. Beyond
	// 1,000 keys of a project and hour, cases are counted under one common key.
	Key       string
	Dropped   bool // the event was not ingested
	EventUUID string
	Details   map[string]any // encodes as a JSON object

	more uint32 // further cases of it
}

// maxDetails bounds the bytes of details that are kept.
const maxDetails = 8 << 10

// detailsJSON encodes details. Details that are too long or cannot be encoded
// are left out.
func detailsJSON(details map[string]any) string {
	if len(details) == 0 {
		return "{}"
	}
	data, err := json.Marshal(details)
	if err != nil || len(data) > maxDetails {
		return "{}"
	}
	return string(data)
}

// newRow returns the row of n cases of w at that time.
func newRow(w Warning, n int64, at time.Time) *row {
	return &row{
		ProjectID: w.ProjectID, Type: w.Type, Key: w.Key, Hour: at.Unix() / 3600, Dropped: w.Dropped, Count: n,
		FirstAt: db.At(at), LastAt: db.At(at), EventUUID: w.EventUUID, Details: detailsJSON(w.Details),
	}
}
