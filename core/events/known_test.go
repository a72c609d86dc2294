package events_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/sdk"
)

func TestKnownByProjectAndUUID(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		s := events.New(events.DefaultConfig(), d, zap.NewNop(), nil)
		event := func(project int64, id string) *sdk.Event {
			return &sdk.Event{UUID: id, ProjectID: project, Name: "e", DistinctID: "u", Timestamp: time.Unix(1, 0), ReceivedAt: time.Unix(1, 0), Properties: json.RawMessage("{}")}
		}
		const one, two = "0192f0aa-0000-7000-8000-000000000001", "0192f0aa-0000-7000-8000-000000000002"
		if _, err := s.Process(t.Context(), []*sdk.Event{event(1, one)}); err != nil {
			t.Fatal(err)
		}
		known, err := s.Known(t.Context(), []*sdk.Event{event(1, two), event(1, one), event(2, one)})
		if err != nil {
			t.Fatal(err)
		}
		if want := []bool{false, true, false}; !slices.Equal(known, want) {
			t.Errorf("known %v, want %v", known, want)
		}
		err = d.Tx(t.Context(), func(ctx context.Context) error {
			if _, err := s.Process(ctx, []*sdk.Event{event(1, two)}); err != nil {
				return err
			}
			known, err = s.Known(ctx, []*sdk.Event{event(1, two)})
			return err
		})
		if err != nil || !known[0] {
			t.Errorf("in the transaction that stored it: %v, %v", known, err)
		}
	})
}
