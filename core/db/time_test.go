package db_test

import (
	"testing"
	"time"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
)

type timedRow struct {
	bun.BaseModel `bun:"table:timed"`

	ID       int64 `bun:",pk"`
	Name     string
	Created  db.Time
	Optional db.Time `bun:",nullzero"`
}

func TestTimeIsAModelField(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		ctx := t.Context()
		if _, err := d.Write(ctx).NewRaw("CREATE TABLE timed (id BIGINT PRIMARY KEY, name TEXT NOT NULL, created BIGINT NOT NULL, optional BIGINT)").Exec(ctx); err != nil {
			t.Fatal(err)
		}
		at := time.Date(2026, 3, 4, 5, 6, 7, 8999, time.FixedZone("east", 3600))
		rows := []*timedRow{{ID: 1, Created: db.At(at), Optional: db.At(at)}, {ID: 2}}
		if _, err := d.Write(ctx).NewInsert().Model(&rows).Exec(ctx); err != nil {
			t.Fatal(err)
		}
		var stored []struct {
			Created  int64
			Optional *int64
		}
		if err := d.Read(ctx).NewSelect().Table("timed").Column("created", "optional").Order("id").Scan(ctx, &stored); err != nil {
			t.Fatal(err)
		}
		if us := at.UnixMicro(); stored[0].Created != us || stored[0].Optional == nil || *stored[0].Optional != us {
			t.Errorf("stored %+v, want %d microseconds twice", stored[0], us)
		}
		if stored[1].Created != 0 || stored[1].Optional != nil {
			t.Errorf("the zero time is stored as %+v, want 0 and NULL", stored[1])
		}
		var got []timedRow
		if err := d.Read(ctx).NewSelect().Model(&got).Where("created <= ?", db.At(at)).Where("created >= ?", db.Time{}).Order("id").Scan(ctx); err != nil {
			t.Fatal(err)
		}
		want := time.Date(2026, 3, 4, 4, 6, 7, 8000, time.UTC)
		if len(got) != 2 || got[0].Created.Time != want || *got[0].Optional.Ptr() != want {
			t.Errorf("read %+v, want %v", got, want)
		}
		if !got[1].Created.IsZero() || got[1].Optional.Ptr() != nil {
			t.Errorf("read %+v, want zero times", got[1])
		}
	})
}

func TestTimeRefusesOtherColumns(t *testing.T) {
	t.Parallel()
	var at db.Time
	if err := at.Scan("2026-03-04"); err == nil {
		t.Error("a text is read as a time")
	}
}

func TestContainsMatchesLiterally(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		ctx := t.Context()
		for _, c := range []struct {
			text, search string
			want         bool
		}{
			{"100% of a_b!", "0% of a_b!", true},
			{"100 of", "0%", false},
			{"axb", "a_b", false},
			{`a\b`, `a\b`, true},
			{"a!b", "a!b", true},
			{"abc", "", true},
		} {
			var got bool
			if err := d.Read(ctx).NewRaw("SELECT CAST(? AS TEXT) LIKE ? ESCAPE '!'", c.text, db.Contains(c.search)).Scan(ctx, &got); err != nil {
				t.Fatal(err)
			}
			if got != c.want {
				t.Errorf("%q contains %q = %v, want %v", c.text, c.search, got, c.want)
			}
		}
	})
}
