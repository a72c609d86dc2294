package activity_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
)

var at = time.Date(2026, 3, 4, 5, 6, 7, 8000, time.UTC)

func TestFindReturnsPagesNewestFirst(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		log := activity.NewLog(d)
		who := &auth.Principal{User: auth.User{ID: 7, FirstName: "Ada", Email: "ada@corp.test"}}
		for i := range 5 {
			e := activity.NewEntry(who, 1, activity.Flag, int64(1+i%2), activity.Updated, at.Add(time.Duration(i)*time.Second))
			e.Detail.Name = fmt.Sprint(i)
			add(t, log, e)
		}
		add(t, log, activity.NewEntry(nil, 1, activity.Cohort, 1, activity.Created, at))
		add(t, log, activity.NewEntry(who, 2, activity.Flag, 1, activity.Created, at))

		for _, c := range []struct {
			name  string
			q     activity.Query
			want  []string
			total int
		}{
			{"all flags", activity.Query{ProjectID: 1, Scope: activity.Flag, Limit: 3}, []string{"4", "3", "2"}, 5},
			{"the next page", activity.Query{ProjectID: 1, Scope: activity.Flag, Limit: 3, Offset: 3}, []string{"1", "0"}, 5},
			{"one flag", activity.Query{ProjectID: 1, Scope: activity.Flag, ItemID: "2", Limit: 9}, []string{"3", "1"}, 2},
			{"past the end", activity.Query{ProjectID: 1, Scope: activity.Flag, Limit: 9, Offset: 90}, nil, 5},
			{"another scope", activity.Query{ProjectID: 1, Scope: activity.Action, Limit: 9}, nil, 0},
		} {
			entries, total, err := log.Find(t.Context(), c.q)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, e := range entries {
				names = append(names, e.Detail.Name)
			}
			if !slices.Equal(names, c.want) || total != c.total {
				t.Errorf("%s: %v of %d, want %v of %d", c.name, names, total, c.want, c.total)
			}
		}
	})
}

func TestEntriesAreStoredWhole(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		log := activity.NewLog(d)
		who := &auth.Principal{User: auth.User{ID: 7, FirstName: "Ada", Email: "ada@corp.test"}}
		e := activity.NewEntry(who, 1, activity.Flag, 3, activity.Updated, at)
		e.Detail = activity.Detail{
			Name:    "new-nav",
			Changes: []activity.Change{{activity.Flag, "changed", "active", json.RawMessage("false"), json.RawMessage("true")}},
			Trigger: &activity.Trigger{JobType: "rollback", JobID: "2", Payload: map[string]any{"version": 2.0}},
		}
		add(t, log, e)
		got, _, err := log.Find(t.Context(), activity.Query{ProjectID: 1, Scope: activity.Flag, Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		if g, w := encode(t, got[0]), encode(t, e); g != w {
			t.Errorf("read:\n%s\nwant:\n%s", g, w)
		}
	})
}

func add(t *testing.T, log *activity.Log, e activity.Entry) {
	t.Helper()
	if err := log.Add(t.Context(), e); err != nil {
		t.Fatal(err)
	}
}

// The first migration of this package merges the tables of earlier versions.
const firstStep = 60

func TestMigrationKeepsOldEntries(t *testing.T) {
	t.Parallel()
	dbtest.RunURL(t, func(t *testing.T, url string) {
		d, err := db.Open(t.Context(), db.Config{URL: url}, "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close() })
		if err := d.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		revert(t, d)
		for _, query := range []string{
			`INSERT INTO flag_activity VALUES ('f1', 1, 'FeatureFlag', '3', 'created', 7, 'Ada', 'ada@corp.test', '{"name":"nav","changes":null}', 1000)`,
			`INSERT INTO flag_activity VALUES ('f2', 1, 'Cohort', '3', 'updated', 0, '', '', '{"name":"women"}', 2000)`,
			`INSERT INTO action_activity VALUES ('a1', 1, 3, 'deleted', 7, 'Ada', 'ada@corp.test', '{"name":"sign up","trigger":null}', 3000)`,
		} {
			if _, err := d.Write(t.Context()).ExecContext(t.Context(), query); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if err := d.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			checkOldEntries(t, activity.NewLog(d))
			revert(t, d)
			for table, want := range map[string]int64{"flag_activity": 2, "action_activity": 1} {
				if n, err := d.Read(t.Context()).NewSelect().Table(table).Count(t.Context()); err != nil || n != want {
					t.Errorf("%d rows in %s after the way back, %v; want %d", n, table, err, want)
				}
			}
		}
	})
}

// revert goes back to before the first migration of this package.
func revert(t *testing.T, d *db.DB) {
	t.Helper()
	steps, err := d.Steps(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, s := range steps {
		if s.Number >= firstStep {
			count++
		}
	}
	if err := d.Revert(t.Context(), count); err != nil {
		t.Fatal(err)
	}
}

func checkOldEntries(t *testing.T, log *activity.Log) {
	t.Helper()
	for scope, want := range map[activity.Scope]string{
		activity.Flag:   "f1 created of 3 by Ada, nav at 1000",
		activity.Cohort: "f2 updated of 3 by , women at 2000",
		activity.Action: "a1 deleted of 3 by Ada, sign up at 3000",
	} {
		entries, total, err := log.Find(t.Context(), activity.Query{ProjectID: 1, Scope: scope, ItemID: "3", Limit: 9})
		if err != nil || total != 1 {
			t.Fatalf("%s: %d entries, %v; want one", scope, total, err)
		}
		e := entries[0]
		got := fmt.Sprintf("%s %s of %s by %s, %s at %d", e.ID, e.Activity, e.ItemID, e.UserName, e.Detail.Name, e.CreatedAt.UnixMicro())
		if got != want {
			t.Errorf("%s: %s, want %s", scope, got, want)
		}
	}
}
