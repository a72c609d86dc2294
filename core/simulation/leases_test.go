package simulation_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/actions"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/notifications"
	"github.com/guidonhq/guidon/core/simulation"
	"github.com/guidonhq/guidon/sdk"
)

// leaseLog records each change of a notification.
const leaseLog = `CREATE TABLE sim_leases (n INTEGER PRIMARY KEY AUTOINCREMENT, id INTEGER, old_state TEXT, new_state TEXT,
	old_until INTEGER, new_until INTEGER, old_by TEXT, old_attempts INTEGER, new_attempts INTEGER, note TEXT)`

const leaseTrigger = `CREATE TRIGGER sim_lease AFTER UPDATE ON notifications BEGIN
	INSERT INTO sim_leases (id, old_state, new_state, old_until, new_until, old_by, old_attempts, new_attempts, note)
	VALUES (old.id, old.state, new.state, old.leased_until, new.leased_until, old.leased_by, old.attempts, new.attempts,
		CASE WHEN new.message_id <> '' THEN new.message_id ELSE new.error END);
END`

// Two processes send the notifications of one database while they are killed, stall,
// lose answers of the database and the notifier, and their clocks jump: each
// notification is settled once, by the process that has its lease.
func TestLeases(t *testing.T) {
	template := migratedFile(t)
	forEachSeed(t, 30, func(t *testing.T, seed uint64) { newOffice(t, seed, template).simulate() })
}

// office is what outlives the processes that send notifications.
type office struct {
	t     *testing.T
	plan  *simulation.Plan
	file  string
	truth *db.DB
	skews bool // the clocks of the processes jump

	mu        sync.Mutex
	delivered map[string]int           // by text
	calling   map[string]bool          // by id
	skew      map[string]time.Duration // by owner
	stalled   map[string]time.Time     // until when an owner does nothing between a lease and its call
}

const messages = 15

func newOffice(t *testing.T, seed uint64, template []byte) *office {
	o := &office{
		t: t, plan: simulation.NewPlan(seed), file: t.TempDir() + "/guidon.db", skews: seed%2 == 0,
		delivered: map[string]int{}, calling: map[string]bool{}, skew: map[string]time.Duration{}, stalled: map[string]time.Time{},
	}
	if err := os.WriteFile(o.file, template, 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if o.truth, err = db.Open(t.Context(), db.Config{URL: "sqlite:" + o.file}, ""); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"PRAGMA synchronous = OFF", leaseLog, leaseTrigger} {
		if _, err := o.truth.Write(t.Context()).NewRaw(s).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

func (o *office) tracef(format string, args ...any) {
	if os.Getenv("GUIDON_SEED") != "" {
		o.t.Logf("%s "+format, append([]any{time.Now().Format("15:04:05.000")}, args...)...)
	}
}

// simulate runs both owners until every notification is settled.
func (o *office) simulate() {
	var owners sync.WaitGroup
	for _, name := range []string{"a", "b"} {
		owners.Go(func() { o.runOwner(name) })
	}
	o.queue()
	o.plan.Calm()
	owners.Wait()
	o.check()
	if err := o.truth.Close(); err != nil {
		o.t.Error(err)
	}
}

// queue queues messages over time.
func (o *office) queue() {
	s := o.service("", o.truth, nil)
	for n := range messages {
		name := "ok"
		if n%9 == 4 {
			name = "drop"
		}
		ev := &sdk.Event{
			UUID: fmt.Sprintf("0190a5a2-7b3c-7000-8000-%012d", n), ProjectID: 1, Name: "paid", DistinctID: fmt.Sprintf("%s%d", name, n),
			Timestamp: time.Now(), ReceivedAt: time.Now(), Properties: json.RawMessage(`{}`),
		}
		store, err := s.Prepare(context.Background(), []*sdk.Event{ev})
		if err == nil {
			err = o.truth.Tx(context.Background(), store)
		}
		if err != nil {
			o.t.Errorf("queue: %v", err)
		}
		time.Sleep(time.Duration(o.plan.Draw("queue").ExpFloat64() * float64(15*time.Second)))
	}
}

// runOwner runs one process after the other.
func (o *office) runOwner(name string) {
	for n := 0; !o.t.Failed(); n++ {
		calm := o.plan.IsCalm()
		p := simulation.NewProcess(o.plan, fmt.Sprintf("%s %d", name, n)).WithFastSQL()
		d, err := db.OpenWrapped(context.Background(), o.file, p.Connector)
		if err != nil {
			o.t.Errorf("open the database: %v", err)
			return
		}
		s := o.service(name, d, p)
		_ = s.Start(context.Background()) // never fails
		done := o.live(name, p, calm)
		draw := o.plan.Draw(name + " stop")
		if !done && (draw.IntN(3) > 0 || p.HasEnded()) {
			p.End()
		}
		stop, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		if p.HasEnded() {
			cancel()
		}
		_ = s.Stop(stop)
		cancel()
		p.End()
		_ = d.Close()
		if done {
			return
		}
		time.Sleep(time.Duration(draw.Int64N(int64(3 * time.Minute))))
	}
}

// live runs until the process ends or shall stop; true if every notification is
// settled.
func (o *office) live(name string, p *simulation.Process, calm bool) bool {
	for end := time.Now().Add(24 * time.Hour); calm; {
		if o.waiting() == 0 {
			return true
		}
		if time.Now().After(end) {
			o.t.Errorf("%d notifications wait after a day", o.waiting())
			return true
		}
		_ = p.Sleep(context.Background(), 10*time.Second)
	}
	for steps := o.plan.Draw(name + " life").IntN(12); steps >= 0; steps-- {
		d := o.plan.Draw(name + " step")
		if p.Sleep(context.Background(), time.Duration(d.Int64N(int64(40*time.Second)))) != nil {
			return false
		}
		switch d.IntN(4) {
		case 0:
			o.mu.Lock()
			o.stalled[name] = time.Now().Add(time.Duration(d.Int64N(int64(4 * time.Minute))))
			o.mu.Unlock()
		case 1:
			p.SetOutage(true)
			_ = p.Sleep(context.Background(), time.Duration(d.Int64N(int64(20*time.Second))))
			p.SetOutage(false)
		case 2:
			if o.skews {
				o.mu.Lock()
				o.skew[name] = time.Duration(d.Int64N(int64(10*time.Minute))) - 5*time.Minute
				o.mu.Unlock()
			}
		}
	}
	return false
}

func (o *office) waiting() (n int) {
	if err := o.truth.LookupDB().QueryRowContext(context.Background(), "SELECT count(*) FROM notifications WHERE state = 'waiting'").Scan(&n); err != nil {
		o.t.Errorf("%v", err)
	}
	return n
}

func (o *office) service(owner string, d *db.DB, p *simulation.Process) *notifications.Service {
	cfg := notifications.DefaultConfig()
	cfg.RetryMin, cfg.RetryMax, cfg.MaxAttempts = time.Second, 30*time.Second, 1000
	cfg.ExpireAfter, cfg.KeepDeliveries, cfg.Every = 1000*time.Hour, 1000*time.Hour, 0
	w := &messenger{office: o, owner: owner, process: p}
	s, err := notifications.NewService(cfg, d, notifications.Dependencies{
		Owner: owner, Notifiers: w, Actions: w, People: people{}, Projects: w, Log: zap.NewNop(),
		Now: func() time.Time {
			o.mu.Lock()
			defer o.mu.Unlock()
			return time.Now().Add(o.skew[owner])
		},
	})
	if err != nil {
		panic(err)
	}
	return s
}

// change is a row of the log of leases.
type change struct {
	N, ID                    int64
	OldState, NewState       string
	OldUntil, NewUntil       int64
	OldBy                    string
	OldAttempts, NewAttempts int64
	Note                     string
}

// check checks the log of leases and the messages.
func (o *office) check() {
	if o.t.Failed() {
		return
	}
	var log []change
	ctx := context.Background()
	if err := o.truth.Read(ctx).NewRaw("SELECT * FROM sim_leases ORDER BY n").Scan(ctx, &log); err != nil {
		o.t.Fatal(err)
	}
	settled := map[int64]bool{}
	for _, c := range log {
		switch {
		case settled[c.ID]:
			o.t.Errorf("notification %d changes after it was settled: %+v", c.ID, c)
		case c.OldAttempts != c.NewAttempts || c.NewState != c.OldState:
			if lease := fmt.Sprintf("%s/%d", c.OldBy, c.OldUntil); c.OldUntil == 0 || !strings.Contains(c.Note, lease) {
				o.t.Errorf("notification %d is written with the result of another lease than %s: %+v", c.ID, lease, c)
			}
			if c.NewAttempts != c.OldAttempts+1 {
				o.t.Errorf("notification %d counts its attempts wrong: %+v", c.ID, c)
			}
		}
		settled[c.ID] = c.NewState != "waiting"
	}
	var rows []struct{ Text, State string }
	if err := o.truth.Read(ctx).NewRaw("SELECT text, state FROM notifications").Scan(ctx, &rows); err != nil {
		o.t.Fatal(err)
	}
	if len(rows) != messages {
		o.t.Errorf("%d notifications, want %d", len(rows), messages)
	}
	for _, r := range rows {
		drop := strings.HasPrefix(r.Text, "drop")
		if r.State != map[bool]string{false: "delivered", true: "failed"}[drop] || (o.delivered[r.Text] == 0) != drop {
			o.t.Errorf("notification %q is %s and was delivered %d times", r.Text, r.State, o.delivered[r.Text])
		}
	}
}

// messenger is the notifier of a process, and the other services that notifications
// need.
type messenger struct {
	office  *office
	owner   string
	process *simulation.Process
}

func (m *messenger) Name() string                       { return "chat" }
func (m *messenger) Properties() sdk.NotifierProperties { return sdk.NotifierProperties{} }
func (m *messenger) Available() bool                    { return true }

func (m *messenger) Notifiers() []notifications.Notifier { return []notifications.Notifier{m} }

// Notify sends one message.
func (m *messenger) Notify(ctx context.Context, items []*sdk.Notification) ([]sdk.NotifyResult, error) {
	o, n := m.office, items[0]
	note, err := m.begin(n)
	if err != nil {
		return nil, err
	}
	defer m.end(n)
	d := o.plan.Draw("chat")
	kind := d.IntN(100)
	latency := time.Duration(d.Int64N(int64(3 * time.Second)))
	if kind < 15 {
		latency = time.Duration(d.Int64N(int64(90 * time.Second))) // often longer than the call may take
	}
	if o.plan.IsCalm() {
		kind = 99
	}
	sleepErr := m.process.Sleep(ctx, latency)
	fail := func(class sdk.Class) *sdk.Error { return sdk.Errorf(class, "no", "%s", note) }
	drop := strings.HasPrefix(n.Text, "drop")
	switch {
	case !drop && (kind < 10 || kind > 40):
		o.mu.Lock()
		o.delivered[n.Text]++ // also if the answer comes too late
		o.mu.Unlock()
		r := n.Delivered(note)
		if sleepErr != nil {
			return nil, fail(sdk.ClassTransient)
		}
		return []sdk.NotifyResult{r}, nil
	case sleepErr != nil, kind < 20:
		return nil, fail(sdk.ClassTransient)
	case kind < 30:
		e := fail(sdk.ClassThrottled)
		e.RetryAfter = time.Duration(d.Int64N(int64(time.Minute)))
		return []sdk.NotifyResult{{Outcome: sdk.Retry, Err: e}}, nil
	case drop && kind > 40:
		return []sdk.NotifyResult{{Outcome: sdk.Dropped, Err: fail(sdk.ClassPermanent)}}, nil
	}
	return []sdk.NotifyResult{{Outcome: sdk.Retry, Err: fail(sdk.ClassTransient)}}, nil
}

// begin checks that the process has the lease of the message. It returns the lease as
// text.
func (m *messenger) begin(n *sdk.Notification) (note string, err error) {
	o := m.office
	if m.process.HasEnded() {
		return "", simulation.ErrEnded
	}
	var by string
	var until int64
	err = o.truth.LookupDB().QueryRowContext(context.Background(), "SELECT leased_by, leased_until FROM notifications WHERE text = ?", n.Text).Scan(&by, &until)
	if err != nil {
		o.t.Errorf("%v", err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now().Add(o.skew[m.owner])
	o.tracef("%s sends %s under the lease of %s until %s", m.owner, n.Text, by, time.UnixMicro(until).UTC().Format("15:04:05"))
	if by != m.owner || until == 0 {
		o.t.Errorf("%s sends %s under the lease of %q", m.owner, n.Text, by)
	}
	if left := time.UnixMicro(until).Sub(now); left < time.Minute {
		o.t.Errorf("%s begins a call of a minute for %s with %s left of its lease", m.owner, n.Text, left)
	}
	if o.calling[n.ID] && !o.skews {
		o.t.Errorf("both processes send %s at once", n.Text)
	}
	o.calling[n.ID] = true
	return fmt.Sprintf("%s/%d", m.owner, until), nil
}

func (m *messenger) end(n *sdk.Notification) {
	m.office.mu.Lock()
	defer m.office.mu.Unlock()
	delete(m.office.calling, n.ID)
}

var paid = &actions.Action{ID: 1, PostToChat: true, Name: "paid", Format: "[event.distinct_id]"}

func (m *messenger) HasPosting(int64) bool { return true }

func (m *messenger) MatchPosting(_ context.Context, _ int64, batch []*sdk.Event, fn func(*sdk.Event, *actions.Action)) error {
	for _, ev := range batch {
		fn(ev, paid)
	}
	return nil
}

// Action returns the action. It is called between the lease and the call, and stalls as
// a virtual machine does.
func (m *messenger) Action(context.Context, int64, int64) (*actions.Action, error) {
	m.office.mu.Lock()
	stall := time.Until(m.office.stalled[m.owner])
	m.office.mu.Unlock()
	return paid, m.process.Sleep(context.Background(), max(stall, time.Millisecond))
}

func (m *messenger) LatestMatch(context.Context, int64, int64) (*sdk.Event, error) { return nil, nil }

// people has no persons.
type people struct{}

func (people) Properties(context.Context, int64, string) ([]byte, bool, error) {
	return nil, false, nil
}

func (people) GroupProperties(context.Context, int64, string, string) ([]byte, bool, error) {
	return nil, false, nil
}

func (m *messenger) Project(_ context.Context, id int64) (auth.Project, error) {
	return auth.Project{ID: id, Name: "Shop", Timezone: "UTC"}, nil
}
