package notifications_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/actions"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/notifications"
	"github.com/guidonhq/guidon/sdk"
)

// noon is when these tests begin: no quiet hour of theirs.
var noon = time.Date(2026, 5, 6, 12, 0, 0, 0, time.UTC)

// clock is set by the test.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// chat is a notifier that remembers what it was given and answers as the test configures.
type chat struct {
	name   string
	answer func(n *sdk.Notification) (sdk.NotifyResult, error) // nil: delivered

	mu    sync.Mutex
	got   []sdk.Notification
	props sdk.NotifierProperties
}

func (c *chat) Name() string                       { return c.name }
func (c *chat) Properties() sdk.NotifierProperties { return c.props }
func (c *chat) Available() bool                    { return true }

func (c *chat) Notify(_ context.Context, items []*sdk.Notification) ([]sdk.NotifyResult, error) {
	var out []sdk.NotifyResult
	for _, n := range items {
		c.mu.Lock()
		c.got = append(c.got, *n)
		answer := c.answer
		c.mu.Unlock()
		r := n.Delivered("m-" + n.ID)
		if answer != nil {
			var err error
			if r, err = answer(n); err != nil {
				return nil, err
			}
		}
		out = append(out, r)
	}
	return out, nil
}

func (c *chat) set(answer func(n *sdk.Notification) (sdk.NotifyResult, error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer = answer
}

// texts is what was said, with the number of those left out.
func (c *chat) texts() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for i := range c.got {
		text := c.got[i].Text
		if n := c.got[i].Suppressed; n > 0 {
			text += fmt.Sprintf("+%d", n)
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

func (c *chat) all() []sdk.Notification {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.got)
}

// world answers what the service asks: an event fits each action whose name it
// has.
type world struct {
	chats   []*chat
	more    []notifications.Notifier
	actions []*actions.Action
	zone    string
	off     atomic.Bool // no action posts any more
}

func (w *world) Notifiers() []notifications.Notifier {
	out := make([]notifications.Notifier, len(w.chats))
	for i := range w.chats {
		out[i] = w.chats[i]
	}
	return append(out, w.more...)
}

func (w *world) HasPosting(int64) bool { return len(w.actions) > 0 }

func (w *world) MatchPosting(_ context.Context, _ int64, batch []*sdk.Event, fn func(*sdk.Event, *actions.Action)) error {
	for _, ev := range batch {
		for _, a := range w.actions {
			if a.Name == ev.Name {
				fn(ev, a)
			}
		}
	}
	return nil
}

func (w *world) Action(_ context.Context, _, id int64) (*actions.Action, error) {
	for _, a := range w.actions {
		if a.ID == id {
			out := *a
			out.PostToChat = a.PostToChat && !w.off.Load()
			return &out, nil
		}
	}
	return nil, fault.New(fault.NotFound, "not_found", "Not found.")
}

func (w *world) LatestMatch(context.Context, int64, int64) (*sdk.Event, error) { return nil, nil }

func (w *world) Properties(_ context.Context, _ int64, id string) ([]byte, bool, error) {
	return []byte(`{"name":"` + id + `"}`), true, nil
}

func (w *world) GroupProperties(context.Context, int64, string, string) ([]byte, bool, error) {
	return nil, false, nil
}

func (w *world) Project(_ context.Context, id int64) (auth.Project, error) {
	return auth.Project{ID: id, Name: "Shop", Timezone: w.zone}, nil
}

// place is a running service.
type place struct {
	*notifications.Service
	*world
	db    *db.DB
	clock *clock
}

// open starts a service; change may alter its config and its world.
func open(t *testing.T, d *db.DB, change func(*notifications.Config, *world)) *place {
	t.Helper()
	p := prepare(t, d, &clock{at: noon}, change)
	p.run(t)
	return p
}

func prepare(t *testing.T, d *db.DB, c *clock, change func(*notifications.Config, *world)) *place {
	t.Helper()
	return prepareFor(t, d, c, "", change)
}

// prepareFor prepares a service of a process with a name.
func prepareFor(t *testing.T, d *db.DB, c *clock, owner string, change func(*notifications.Config, *world)) *place {
	t.Helper()
	cfg := notifications.DefaultConfig()
	cfg.RetryMin, cfg.RetryMax = time.Second, time.Minute
	w := &world{
		chats: []*chat{{name: "team"}}, zone: "UTC",
		actions: []*actions.Action{{ID: 1, PostToChat: true, Name: "paid", Format: "[event.distinct_id]"}},
	}
	if change != nil {
		change(&cfg, w)
	}
	s, err := notifications.NewService(cfg, d, notifications.Dependencies{
		Owner: owner, Notifiers: w, Actions: w, People: w, Projects: w, Now: c.now, Log: zap.NewNop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return &place{Service: s, world: w, db: d, clock: c}
}

func (p *place) run(t *testing.T) {
	t.Helper()
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Stop(context.Background()) })
}

// happen has people do something, in one transaction, as the follower does.
func (p *place) happen(t *testing.T, event string, people ...string) {
	t.Helper()
	var batch []*sdk.Event
	for _, who := range people {
		batch = append(batch, &sdk.Event{
			UUID: "of-" + event + "-" + who, ProjectID: 1, Name: event, DistinctID: who, Timestamp: p.clock.now(), ReceivedAt: p.clock.now(),
			Properties: json.RawMessage(`{}`),
		})
	}
	store, err := p.Prepare(t.Context(), batch)
	if err == nil {
		err = p.db.Tx(t.Context(), store)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// rows counts the messages in a state.
func (p *place) rows(t *testing.T, state notifications.State) (n int) {
	t.Helper()
	if err := p.db.Read(t.Context()).NewRaw("SELECT count(*) FROM notifications WHERE state = ?", state).Scan(t.Context(), &n); err != nil {
		t.Fatal(err)
	}
	return n
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

func (p *place) expectTexts(t *testing.T, c *chat, want string) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s said %q at the end", c.name, c.texts())
		}
	})
	eventually(t, fmt.Sprintf("%s gets %q", c.name, want), func() bool { return c.texts() == want })
}

func TestMatchIsDeliveredOnce(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		p := open(t, d, nil)
		team := p.chats[0]
		p.happen(t, "paid", "ada", "bob")
		p.happen(t, "seen", "eve")
		p.expectTexts(t, team, "ada bob")
		p.happen(t, "paid", "ada") // sent by the client once more
		p.happen(t, "paid", "cid")
		p.expectTexts(t, team, "ada bob cid")
		eventually(t, "all is written down", func() bool { return p.rows(t, notifications.Delivered) == 3 })
		n := team.all()[0]
		if n.Person.Display != "ada" || n.Action.Name != "paid" || n.Project.Name != "Shop" || n.Event.UUID != "of-paid-ada" || n.Attempt != 1 {
			t.Errorf("delivered %+v", n)
		}
	})
}

func TestDestinationsHaveTheirOwnFormat(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		p := open(t, d, func(_ *notifications.Config, w *world) {
			w.chats = append(w.chats, &chat{name: "mail"}, &chat{name: "unused"})
			w.actions[0].Destinations = []actions.Destination{
				{Notifier: "team"}, {Notifier: "mail", To: "ops@example.com", Format: "mail of [person]"}, {Notifier: "gone"},
			}
		})
		p.happen(t, "paid", "ada")
		p.expectTexts(t, p.chats[0], "ada")
		p.expectTexts(t, p.chats[1], "mail of ada")
		if got := p.chats[1].all()[0]; got.Destination != "ops@example.com" || got.ID == p.chats[0].all()[0].ID {
			t.Errorf("sent %+v", got)
		}
		if got := p.chats[2].texts(); got != "" {
			t.Errorf("an unnamed notifier got %q", got)
		}
	})
}

func TestSuppressedMessagesAreCounted(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		p := open(t, d, func(c *notifications.Config, _ *world) { c.Every, c.Burst = 10*time.Second, 2 })
		team := p.chats[0]
		var payers []string
		for i := range 10 {
			payers = append(payers, fmt.Sprint("p", i))
		}
		p.happen(t, "paid", payers...)
		p.expectTexts(t, team, "p0 p1")
		p.clock.pass(10 * time.Second) // no further events: the latest is delivered with the number of the others
		p.expectTexts(t, team, "p0 p1 p9+7")
		p.happen(t, "paid", "p10", "p11")
		p.clock.pass(10 * time.Second)
		p.expectTexts(t, team, "p0 p1 p9+7 p11+1")
	})
}

func TestDuplicateEventsAreNotCounted(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		p := open(t, d, func(c *notifications.Config, _ *world) { c.Every, c.Burst = 10*time.Second, 3 })
		team := p.chats[0]
		p.happen(t, "paid", "p0", "p1", "p2", "p3", "p4", "p5", "p6", "p0", "p1", "p6") // the last three once more
		p.expectTexts(t, team, "p0 p1 p2")
		p.clock.pass(10 * time.Second)
		p.expectTexts(t, team, "p0 p1 p2 p6+3")
		p.happen(t, "paid", "p0", "p1", "p2")
		p.clock.pass(time.Minute)
		p.happen(t, "paid", "p7")
		p.expectTexts(t, team, "p0 p1 p2 p6+3 p7")
	})
}

func TestFormatsHaveSeparateRates(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		p := open(t, d, func(c *notifications.Config, w *world) {
			c.Every, c.Burst = 10*time.Second, 1
			w.actions[0].Destinations = []actions.Destination{{Notifier: "team"}, {Notifier: "team", Format: "again-[event.distinct_id]"}}
		})
		p.happen(t, "paid", "a", "b", "c")
		p.expectTexts(t, p.chats[0], "a again-a")
		p.clock.pass(10 * time.Second)
		eventually(t, "both tell what was left out", func() bool {
			said := p.chats[0].texts()
			return strings.Contains(said, " c+1") && strings.Contains(said, " again-c+1")
		})
	})
}

func TestDisabledActionStopsPosting(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		p := open(t, d, func(c *notifications.Config, _ *world) { c.Every, c.Burst = 10*time.Second, 2 })
		team := p.chats[0]
		team.set(func(*sdk.Notification) (sdk.NotifyResult, error) {
			return sdk.NotifyResult{Outcome: sdk.Retry, Err: sdk.AsError(sdk.Transient(errors.New("down")))}, nil
		})
		p.happen(t, "paid", "a", "b", "c", "d")
		p.expectTexts(t, team, "a b")
		team.set(nil)
		p.off.Store(true)
		p.clock.pass(time.Minute)
		eventually(t, "what waited is given up", func() bool { return p.rows(t, notifications.Failed) == 2 })
		eventually(t, "what was left out is forgotten", func() bool {
			var n int
			err := d.Read(t.Context()).NewRaw("SELECT count(*) FROM notification_rates WHERE suppressed > 0").Scan(t.Context(), &n)
			return err == nil && n == 0
		})
		p.off.Store(false)
		p.happen(t, "paid", "e")
		p.expectTexts(t, team, "a b e") // without the suppressed ones
	})
}

func TestStopWaitsForCallInFlight(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	p := open(t, d, nil)
	team := p.chats[0]
	entered, free := make(chan struct{}), make(chan struct{})
	team.set(func(n *sdk.Notification) (sdk.NotifyResult, error) {
		close(entered)
		<-free
		return n.Delivered(""), nil
	})
	p.happen(t, "paid", "ada")
	<-entered
	stopped := make(chan struct{})
	go func() {
		_ = p.Stop(context.Background())
		close(stopped)
	}()
	close(free)
	<-stopped
	if n := p.rows(t, notifications.Delivered); n != 1 {
		t.Errorf("%d are written down as delivered", n)
	}
}

func TestQuietHoursSuppressMessages(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		p := open(t, d, func(c *notifications.Config, w *world) {
			c.QuietHours, c.Every, c.Burst = "22:00-07:00", 30*time.Second, 1
			w.zone = "Asia/Tokyo" // noon is 21:00 there
		})
		team := p.chats[0]
		p.happen(t, "paid", "early")
		p.expectTexts(t, team, "early")
		p.clock.pass(time.Hour - 10*time.Second)
		p.happen(t, "paid", "late")
		p.expectTexts(t, team, "early late")
		p.happen(t, "paid", "fast") // left out ten seconds before the quiet hours, due in them
		p.clock.pass(time.Minute)
		p.happen(t, "paid", "night", "owl")
		p.clock.pass(8 * time.Hour)
		time.Sleep(700 * time.Millisecond) // the queue is looked at twice
		if got := team.texts(); got != "early late" {
			t.Fatalf("said %q in the night", got)
		}
		p.clock.pass(time.Hour)
		p.expectTexts(t, team, "early late owl+2")
	})
}

func TestRetryAfterIsRespected(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		p := open(t, d, nil)
		team := p.chats[0]
		team.set(func(n *sdk.Notification) (sdk.NotifyResult, error) {
			if n.Attempt == 1 && n.Text == "ada" {
				return sdk.NotifyResult{Outcome: sdk.Retry, Err: sdk.AsError(sdk.Throttled(errors.New("slow down"), 30*time.Second))}, nil
			}
			return n.Delivered(""), nil
		})
		p.happen(t, "paid", "ada")
		p.expectTexts(t, team, "ada")
		p.happen(t, "paid", "bob") // waits too: the destination was asked to be left alone
		p.clock.pass(29 * time.Second)
		time.Sleep(700 * time.Millisecond)
		if got := team.texts(); got != "ada" {
			t.Fatalf("said %q too early", got)
		}
		eventually(t, "both are delivered", func() bool {
			p.clock.pass(time.Second) // the pause may have begun after the time passed
			return p.rows(t, notifications.Delivered) == 2
		})
		got := team.all()
		if len(got) != 3 || got[0].ID != got[1].ID && got[0].ID != got[2].ID {
			t.Errorf("a retry has the same id: %s", team.texts())
		}
	})
}

func TestUndeliverableMessagesFail(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		answer func(n *sdk.Notification) (sdk.NotifyResult, error)
		state  notifications.State
	}{
		"the service will never take it": {func(*sdk.Notification) (sdk.NotifyResult, error) {
			return sdk.NotifyResult{Outcome: sdk.Dropped, Err: sdk.AsError(sdk.Permanent(errors.New("no such channel")))}, nil
		}, notifications.Failed},
		"it was tried too often": {func(*sdk.Notification) (sdk.NotifyResult, error) {
			return sdk.NotifyResult{Outcome: sdk.Retry, Err: sdk.AsError(sdk.Transient(errors.New("down")))}, nil
		}, notifications.Failed},
		"an unknown outcome": {func(*sdk.Notification) (sdk.NotifyResult, error) {
			return sdk.NotifyResult{}, errors.New("the process is gone")
		}, notifications.Failed},
		"an empty answer is not a success": {func(*sdk.Notification) (sdk.NotifyResult, error) {
			return sdk.NotifyResult{}, nil
		}, notifications.Failed},
		"it is too late": {func(*sdk.Notification) (sdk.NotifyResult, error) {
			return sdk.NotifyResult{Outcome: sdk.Retry, Err: sdk.AsError(sdk.Throttled(errors.New("later"), 2*time.Hour))}, nil
		}, notifications.Expired},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := open(t, dbtest.SQLite(t), func(c *notifications.Config, _ *world) {
				if c.MaxAttempts = 3; want.state == notifications.Failed {
					c.ExpireAfter = 1000 * time.Hour
				}
			})
			p.chats[0].set(want.answer)
			p.happen(t, "paid", "ada")
			eventually(t, "it is given up", func() bool {
				p.clock.pass(5 * time.Second)
				return p.rows(t, want.state) == 1
			})
		})
	}
}

func TestSlowDestinationDoesNotDelayOthers(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		p := open(t, d, func(_ *notifications.Config, w *world) { w.chats = append(w.chats, &chat{name: "other"}) })
		free := make(chan struct{})
		p.chats[0].set(func(n *sdk.Notification) (sdk.NotifyResult, error) {
			<-free
			return n.Delivered(""), nil
		})
		p.happen(t, "paid", "ada")
		p.expectTexts(t, p.chats[1], "ada")
		p.happen(t, "paid", "bob")
		p.expectTexts(t, p.chats[1], "ada bob")
		close(free)
		p.expectTexts(t, p.chats[0], "ada bob")
	})
}

func TestUnconfirmedMessageIsResentWithSameID(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		c := &clock{at: noon}
		// The first server queues and is gone before it sends.
		first := prepare(t, d, c, nil)
		first.happen(t, "paid", "ada")
		// The second has the message in hand when it is gone: its claim runs out.
		if _, err := d.Write(t.Context()).NewRaw("UPDATE notifications SET leased_until = ?", noon.Add(2*time.Minute).UnixMicro()).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		third := prepare(t, d, c, nil)
		third.run(t)
		time.Sleep(700 * time.Millisecond)
		if got := third.chats[0].texts(); got != "" {
			t.Fatalf("said %q while another has it in hand", got)
		}
		c.pass(3 * time.Minute)
		third.expectTexts(t, third.chats[0], "ada")
	})
}

// TestUnconfirmedMessageIsSentFirstAfterARestart ends a process while it sends: the
// next one on the same journal sends that message at once, before newer ones.
func TestUnconfirmedMessageIsSentFirstAfterARestart(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		c := &clock{at: noon}
		first := prepare(t, d, c, nil)
		first.happen(t, "paid", "ada")
		if _, err := d.Write(t.Context()).NewRaw("UPDATE notifications SET leased_until = ?, leased_by = 'journal-1'",
			noon.Add(2*time.Minute).UnixMicro()).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.pass(time.Second)
		first.happen(t, "paid", "bob")
		second := prepareFor(t, d, c, "journal-1", nil)
		second.run(t)
		second.expectTexts(t, second.chats[0], "ada bob")
	})
}

func TestRolledBackTransactionQueuesNothing(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		p := prepare(t, d, &clock{at: noon}, nil)
		gone := errors.New("gone")
		err := d.Tx(t.Context(), func(ctx context.Context) error {
			ev := &sdk.Event{UUID: "u", ProjectID: 1, Name: "paid", DistinctID: "ada", Timestamp: noon, Properties: json.RawMessage(`{}`)}
			store, err := p.Prepare(ctx, []*sdk.Event{ev})
			if err != nil {
				return err
			}
			if err := store(ctx); err != nil {
				return err
			}
			return gone
		})
		if !errors.Is(err, gone) || p.rows(t, notifications.Waiting) != 0 {
			t.Errorf("%v, and %d messages", err, p.rows(t, notifications.Waiting))
		}
	})
}

func TestInvalidConfigs(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*notifications.Config){
		"quiet_hours":     func(c *notifications.Config) { c.QuietHours = "late" },
		"every":           func(c *notifications.Config) { c.Every = -1 },
		"burst":           func(c *notifications.Config) { c.Burst = 0 },
		"expire_after":    func(c *notifications.Config) { c.ExpireAfter = 0 },
		"max_attempts":    func(c *notifications.Config) { c.MaxAttempts = 0 },
		"retry_min":       func(c *notifications.Config) { c.RetryMin = time.Hour },
		"site_url":        func(c *notifications.Config) { c.SiteURL = "javascript:alert(1)" },
		"keep_deliveries": func(c *notifications.Config) { c.KeepDeliveries = 0 },
	} {
		cfg := notifications.DefaultConfig()
		change(&cfg)
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "notifications."+name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := notifications.DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
}
