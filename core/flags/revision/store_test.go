package revision_test

import (
	"context"
	"errors"
	"testing"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/flags/revision"
)

func TestChangeAdvancesTheRevision(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		s, ctx := revision.NewStore(d), t.Context()
		nothing := func(context.Context) error { return nil }
		for _, project := range []int64{1, 1, 2} {
			if err := s.Change(ctx, project, nothing); err != nil {
				t.Fatal(err)
			}
		}
		failed := errors.New("failed")
		if err := s.Change(ctx, 2, func(context.Context) error { return failed }); !errors.Is(err, failed) {
			t.Fatalf("got %v", err)
		}
		all, err := s.All(ctx)
		if err != nil || len(all) != 2 || all[1] != 2 || all[2] != 1 {
			t.Errorf("got %v, %v; want revision 2 of project 1 and 1 of project 2", all, err)
		}
		if n, err := s.Of(ctx, 3); n != 0 || err != nil {
			t.Errorf("unknown project: got %d, %v; want 0", n, err)
		}
	})
}
