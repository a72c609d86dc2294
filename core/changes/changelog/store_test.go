package changelog_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/changes/changelog"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
)

func record(t *testing.T, d *db.DB, s *changelog.Store, c changelog.Change) {
	t.Helper()
	if err := d.Tx(t.Context(), func(ctx context.Context) error { return s.Record(ctx, c) }); err != nil {
		t.Error(err)
	}
}

func TestRecordAdvancesTheRevisionOfTheProject(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		s, ctx, at := changelog.NewStore(d), t.Context(), time.Now()
		record(t, d, s, changelog.Change{ProjectID: 1, At: at, Kind: changelog.Flag, ItemID: 7, Name: "nav", Operation: changelog.Created})
		record(t, d, s, changelog.Change{ProjectID: 2, At: at, Kind: changelog.Action, ItemID: 8, Name: "buy", Operation: changelog.Deleted})
		failed := errors.New("failed")
		err := d.Tx(ctx, func(ctx context.Context) error {
			if err := s.Record(ctx, changelog.Change{ProjectID: 1, At: at}); err != nil {
				return err
			}
			return failed
		})
		if !errors.Is(err, failed) {
			t.Fatal(err)
		}
		record(t, d, s, changelog.Change{ProjectID: 1, At: at, Kind: changelog.Cohort, ItemID: 9, Name: "c", Operation: changelog.Updated})
		heads, err := s.Heads(ctx, []int64{1, 2, 3})
		if err != nil || len(heads) != 2 || heads[1].Revision != 2 || heads[2].Revision != 1 || heads[1].At.Unix() != at.Unix() {
			t.Errorf("got %v, %v", heads, err)
		}
		list, complete, err := s.Since(ctx, 1, 0, 10)
		if err != nil || !complete || len(list) != 2 || list[0].Name != "nav" || list[1].Kind != changelog.Cohort || list[1].Revision != 2 {
			t.Errorf("got %v, %v, %v", list, complete, err)
		}
		if list, complete, err = s.Since(ctx, 1, 2, 10); len(list) != 0 || !complete || err != nil {
			t.Errorf("nothing since: got %v, %v, %v", list, complete, err)
		}
	})
}

// Concurrent changes have different revisions, and a revision is visible only
// with all before it.
func TestRevisionsAreVisibleInOrder(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		s := changelog.NewStore(d)
		var writers sync.WaitGroup
		for range 4 {
			writers.Go(func() {
				for range 10 {
					record(t, d, s, changelog.Change{ProjectID: 1, At: time.Now(), Kind: changelog.Flag, Operation: changelog.Updated})
				}
			})
		}
		for seen := int64(0); seen < 40; {
			list, _, err := s.Since(t.Context(), 1, seen, 100)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range list {
				if c.Revision != seen+1 {
					t.Fatalf("revision %d after %d", c.Revision, seen)
				}
				seen = c.Revision
			}
		}
		writers.Wait()
	})
}

func TestOldChangesAreRemoved(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		s := changelog.NewStore(d)
		err := d.Tx(t.Context(), func(ctx context.Context) error {
			for range 1200 {
				if err := s.Record(ctx, changelog.Change{ProjectID: 1, At: time.Now(), Kind: changelog.Flag, Operation: changelog.Updated}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if list, complete, err := s.Since(t.Context(), 1, 100, 10); err != nil || complete || list[0].Revision != 201 {
			t.Errorf("got %v, %v, %v", list, complete, err)
		}
		if list, complete, err := s.Since(t.Context(), 1, 200, 2000); err != nil || !complete || len(list) != 1000 {
			t.Errorf("got %d, %v, %v", len(list), complete, err)
		}
	})
}
