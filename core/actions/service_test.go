package actions_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/actions"
	actionmatch "github.com/guidonhq/guidon/core/actions/match"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/sdk"
)

type noUsers struct{}

func (noUsers) UsersByID(context.Context, []int64) (map[int64]auth.User, error) { return nil, nil }

type chat struct{}

func (chat) CheckFormat(format string) error {
	if format == "[bad" {
		return fault.Field("chat_message_format", "invalid_template", "column 1: not closed")
	}
	return nil
}
func (chat) HasNotifier(name string) bool { return name == "team" }

type utc struct{}

func (utc) Project(_ context.Context, id int64) (auth.Project, error) {
	return auth.Project{ID: id, Timezone: "UTC"}, nil
}

var (
	ada  = &auth.Principal{User: auth.User{ID: 7, FirstName: "Ada", Email: "ada@example.com"}}
	shop = auth.Project{ID: 1, Timezone: "UTC"}
)

func service(t *testing.T, d *db.DB) (*actions.Service, *actions.Snapshots) {
	t.Helper()
	store := actions.NewStore(d)
	memory := actions.NewSnapshots(store, utc{}, nil, zap.NewNop())
	s, err := actions.NewService(store, actions.Dependencies{Users: noUsers{}, Chat: chat{}, Snapshots: memory})
	if err != nil {
		t.Fatal(err)
	}
	return s, memory
}

func text(s string) web.Opt[string] { return web.Opt[string]{Set: true, Value: s} }

func steps(event ...string) web.Opt[[]actionmatch.Step] {
	out := web.Opt[[]actionmatch.Step]{Set: true}
	for _, e := range event {
		out.Value = append(out.Value, actionmatch.Step{Event: e})
	}
	return out
}

// fits lists the actions of a project that an event of this name fits.
func fits(p *actions.ProjectActions, posting bool, name string) (ids []int64) {
	var seen actionmatch.EventView
	seen.Reset(&sdk.Event{Name: name, Properties: []byte("{}")})
	index := p.All
	if posting {
		index = p.Posting
	}
	index.MatchEach(&seen, &match.Env{Now: time.Now()}, func(id int64, r match.Result) {
		if r == match.True {
			ids = append(ids, id)
		}
	})
	return ids
}

func TestSnapshotIsCurrentAfterWrite(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		s, memory := service(t, d)
		a, err := s.Create(t.Context(), ada, shop, actions.Input{Name: text("a"), Steps: steps("paid")})
		if err != nil {
			t.Fatal(err)
		}
		if got := fits(memory.ForProject(1), false, "paid"); len(got) != 1 || got[0] != a.ID {
			t.Errorf("after making it: %v", got)
		}
		if got := fits(memory.ForProject(1), true, "paid"); len(got) != 0 {
			t.Errorf("it posts: %v", got)
		}
		on := web.Opt[bool]{Set: true, Value: true}
		if _, err := s.Update(t.Context(), ada, shop, a.ID, actions.Input{PostToChat: on, Steps: steps("left")}); err != nil {
			t.Fatal(err)
		}
		if p := memory.ForProject(1); len(fits(p, true, "left")) != 1 || len(fits(p, false, "paid")) != 0 || p.ByID[a.ID].Version != 2 {
			t.Error("the change is not in memory")
		}
		if _, err := s.Update(t.Context(), ada, shop, a.ID, actions.Input{Deleted: on}); err != nil {
			t.Fatal(err)
		}
		if p := memory.ForProject(1); len(p.ByID) != 0 || len(fits(p, false, "left")) != 0 {
			t.Error("a deleted action matches")
		}
		if len(fits(memory.ForProject(2), false, "left")) != 0 {
			t.Error("another project has it")
		}
	})
}

// What another process writes is noticed, and one action that cannot be read
// hinders no other.
func TestSnapshotFollowsOtherProcesses(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		other, _ := service(t, d)
		_, memory := service(t, d)
		if err := memory.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = memory.Stop(context.Background()) })
		var last int64
		for i := range 3 {
			a, err := other.Create(t.Context(), ada, shop, actions.Input{Name: text(fmt.Sprint(i)), Steps: steps("paid")})
			if err != nil {
				t.Fatal(err)
			}
			last = a.ID
		}
		if _, err := d.Write(t.Context()).ExecContext(t.Context(), "UPDATE actions SET steps = 'no JSON' WHERE id = ?", last); err != nil {
			t.Fatal(err)
		}
		if err := actions.NewStore(d).Touch(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		deadline := time.Now().Add(time.Minute)
		for len(fits(memory.ForProject(1), false, "paid")) != 2 {
			if time.Now().After(deadline) {
				t.Fatalf("memory has %v", fits(memory.ForProject(1), false, "paid"))
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
}

func TestNamesAreUniqueUnderConcurrency(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		s, _ := service(t, d)
		var made, refused sync.Map
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				a, err := s.Create(context.Background(), ada, shop, actions.Input{Name: text("same")})
				switch {
				case err == nil:
					made.Store(a.ID, true)
				case fault.Is(err, fault.Invalid):
					refused.Store(i, true)
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n, m := size(&made), size(&refused); n != 1 || m != 7 {
			t.Errorf("%d made, %d refused", n, m)
		}
	})
}

func size(m *sync.Map) (n int) {
	m.Range(func(any, any) bool { n++; return true })
	return n
}

func TestDestinationsAndFormatsAreValidated(t *testing.T) {
	t.Parallel()
	s, _ := service(t, dbtest.SQLite(t))
	to := func(d ...actions.Destination) actions.Input {
		return actions.Input{Destinations: web.Opt[[]actions.Destination]{Set: true, Value: d}}
	}
	for attr, in := range map[string]actions.Input{
		"chat_destinations__1__notifier": to(actions.Destination{Notifier: "team"}, actions.Destination{Notifier: "gone"}),
		"chat_destinations__0__format":   to(actions.Destination{Notifier: "team", Format: "[bad"}),
	} {
		_, err := s.Create(t.Context(), ada, shop, in)
		if f := fault.From(err); f == nil || f.Attr != attr {
			t.Errorf("%s: %v", attr, err)
		}
	}
	a, err := s.Create(t.Context(), ada, shop, to(actions.Destination{Notifier: "team", To: "#x"}))
	if err != nil || len(a.Destinations) != 1 {
		t.Errorf("%+v, %v", a, err)
	}
}

// An update that changes nothing leaves the version and the log alone.
func TestUpdateWithoutChangesWritesNothing(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		s, _ := service(t, d)
		a, err := s.Create(t.Context(), ada, shop, actions.Input{Name: text("a"), Description: text("d")})
		if err != nil {
			t.Fatal(err)
		}
		b, err := s.Update(t.Context(), ada, shop, a.ID, actions.Input{Name: text("a"), Description: text("d")})
		if err != nil || b.Version != 1 {
			t.Errorf("version %d, %v", b.Version, err)
		}
		entries, n, err := s.Activity(t.Context(), 1, a.ID, 10, 0)
		if err != nil || n != 1 || entries[0].Activity != "created" || entries[0].UserID != 7 {
			t.Errorf("%d entries %+v, %v", n, entries, err)
		}
		if _, _, err := s.Activity(t.Context(), 2, a.ID, 10, 0); !fault.Is(err, fault.NotFound) {
			t.Errorf("the log of another project: %v", err)
		}
		if raw, err := json.Marshal(entries[0]); err != nil || !json.Valid(raw) {
			t.Errorf("%s, %v", raw, err)
		}
	})
}
