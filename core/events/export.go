package events

import (
	"context"
	"fmt"
	"time"

	"github.com/guidonhq/guidon/sdk"
)

// ExportQuery selects events to export, in the order of their timestamps and rows.
type ExportQuery struct {
	Event        string    // "": all names
	Since, Until time.Time // bound the timestamp to [Since, Until); zero does not
	Through      int64     // the last row; 0 does not bound
	After        Cursor    // position behind which to go on; the zero Cursor is the begin
}

// Exported is an event with the cursor behind it.
type Exported struct {
	Event  sdk.Event
	Cursor Cursor
}

// Export returns at most limit events; fewer than limit are the last ones. Reading goes
// on exactly behind a cursor, also when events were stored or deleted meanwhile.
// PersonID is the current person.
func (s *Service) Export(ctx context.Context, projectID int64, q ExportQuery, limit int) ([]Exported, error) {
	ctx, cancel := s.withQueryTimeout(ctx)
	defer cancel()
	rows, err := s.backend.Export(ctx, projectID, q, limit)
	if err != nil {
		return nil, fmt.Errorf("export events: %w", err)
	}
	out := make([]Exported, len(rows))
	for i := range rows {
		out[i] = Exported{rows[i].ToEvent(), rows[i].cursor()}
	}
	return out, nil
}
