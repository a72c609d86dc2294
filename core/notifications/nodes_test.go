package notifications_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/actions"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/notifications"
	"github.com/guidonhq/guidon/sdk"
)

// service is what a chat service sees of all nodes together.
type service struct {
	mu      sync.Mutex
	texts   []string
	at      []time.Time
	calling atomic.Int32
	overlap atomic.Bool
	answer  func(n *sdk.Notification) sdk.NotifyResult // nil: delivered
}

// line is one node's connection to the service.
type line struct {
	*service
	props sdk.NotifierProperties
}

func (l *line) Name() string                       { return "team" }
func (l *line) Properties() sdk.NotifierProperties { return l.props }
func (l *line) Available() bool                    { return true }

func (l *line) Notify(_ context.Context, items []*sdk.Notification) ([]sdk.NotifyResult, error) {
	if l.calling.Add(1) > 1 {
		l.overlap.Store(true)
	}
	defer l.calling.Add(-1)
	time.Sleep(2 * time.Millisecond) // a call takes time: another node could begin one
	l.mu.Lock()
	defer l.mu.Unlock()
	l.texts = append(l.texts, items[0].Text)
	l.at = append(l.at, time.Now())
	if l.answer != nil {
		return []sdk.NotifyResult{l.answer(items[0])}, nil
	}
	return []sdk.NotifyResult{items[0].Delivered("m")}, nil
}

func (l *service) heard() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.texts)
}

// office is a world with one notifier.
type office struct {
	world
	line *line
}

func (o *office) Notifiers() []notifications.Notifier { return []notifications.Notifier{o.line} }

// node starts a service that uses the clock of the database.
func node(t *testing.T, d *db.DB, s *service, p sdk.NotifierProperties, destinations ...string) *notifications.Service {
	t.Helper()
	return namedNode(t, d, s, notifications.Dependencies{}, p, destinations...)
}

// namedNode is node with a part of its dependencies.
func namedNode(t *testing.T, d *db.DB, s *service, deps notifications.Dependencies, p sdk.NotifierProperties, destinations ...string) *notifications.Service {
	t.Helper()
	o := &office{line: &line{s, p}}
	for i, to := range destinations {
		o.actions = append(o.actions, &actions.Action{
			ID: int64(i + 1), PostToChat: true, Name: "paid", Format: "[event.distinct_id]",
			Destinations: []actions.Destination{{Notifier: "team", To: to}},
		})
	}
	cfg := notifications.DefaultConfig()
	cfg.Every, cfg.RetryMin = 0, 10*time.Millisecond
	deps.Notifiers, deps.Actions, deps.People, deps.Projects, deps.Log = o, o, o, o, zap.NewNop()
	n, err := notifications.NewService(cfg, d, deps)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// post queues a message through a node, as its follower does.
func post(t *testing.T, d *db.DB, n *notifications.Service, who string) {
	t.Helper()
	store, err := n.Prepare(t.Context(), []*sdk.Event{{
		UUID: "of-" + who, ProjectID: 1, Name: "paid", DistinctID: who, Timestamp: time.Now(), ReceivedAt: time.Now(), Properties: json.RawMessage(`{}`),
	}})
	if err == nil {
		err = d.Tx(t.Context(), store)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func startNodes(t *testing.T, nodes ...*notifications.Service) {
	t.Helper()
	for _, n := range nodes {
		if err := n.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = n.Stop(context.Background()) })
	}
}

// TestNodesSendInOrder has two nodes queue messages for one destination and send them:
// each message once, in the order of the queue, one call at a time.
func TestNodesSendInOrder(t *testing.T) {
	t.Parallel()
	d, s := dbtest.Postgres(t), &service{}
	a, b := node(t, d, s, sdk.NotifierProperties{}, "#sales"), node(t, d, s, sdk.NotifierProperties{}, "#sales")
	startNodes(t, a, b)
	var want []string
	for i := range 100 {
		who := fmt.Sprintf("p%03d", i)
		post(t, d, []*notifications.Service{a, b}[i%2], who)
		want = append(want, who)
	}
	eventually(t, "all messages are sent", func() bool { return len(s.heard()) >= len(want) })
	if got := s.heard(); !slices.Equal(got, want) {
		t.Errorf("sent %s", strings.Join(got, " "))
	}
	if s.overlap.Load() {
		t.Error("two nodes called the notifier for one destination at once")
	}
}

// TestNodesShareARate has two nodes send to two destinations through a notifier with one
// rate for both: together they need the time of the rate. With a rate each they would
// need half of it; a quarter is left to a busy machine.
func TestNodesShareARate(t *testing.T) {
	t.Parallel()
	const perSecond, messages = 10, 12
	d, s, p := dbtest.Postgres(t), &service{}, sdk.NotifierProperties{PerSecond: perSecond, Burst: 1}
	a, b := node(t, d, s, p, "#sales", "#team"), node(t, d, s, p, "#sales", "#team")
	for i := range messages {
		post(t, d, a, fmt.Sprintf("p%03d", i))
	}
	begin := time.Now()
	startNodes(t, a, b)
	eventually(t, "all messages are sent", func() bool { return len(s.heard()) == 2*messages })
	if took, full := time.Since(begin), (2*messages-1)*time.Second/perSecond; took < full*3/4 {
		t.Errorf("%d messages at %d a second took %s, want about %s or more", 2*messages, perSecond, took, full)
	}
}

// TestPauseHoldsForAllNodes lets the notifier refuse the first call for some seconds: no
// node calls it before.
func TestPauseHoldsForAllNodes(t *testing.T) {
	t.Parallel()
	const pause = 3 * time.Second
	d, s := dbtest.Postgres(t), &service{}
	s.answer = func(n *sdk.Notification) sdk.NotifyResult {
		if len(s.texts) == 1 {
			return sdk.NotifyResult{Outcome: sdk.Retry, Err: &sdk.Error{Class: sdk.ClassThrottled, RetryAfter: pause, Code: "slow", Message: "slow down"}}
		}
		return n.Delivered("m")
	}
	a, b := node(t, d, s, sdk.NotifierProperties{}, "#sales"), node(t, d, s, sdk.NotifierProperties{}, "#sales")
	for _, who := range []string{"ada", "bob", "eve"} {
		post(t, d, a, who)
	}
	startNodes(t, a, b)
	eventually(t, "all messages are sent", func() bool { return len(s.heard()) == 4 })
	s.mu.Lock()
	defer s.mu.Unlock()
	if between := s.at[1].Sub(s.at[0]); between < pause-time.Second {
		t.Errorf("a node called %s after a refusal for %s", between, pause)
	}
}

// TestLeasesOfADeadNodeEnd has a node stop for ever in a call. Another node sends its
// message and the next one when it knows that the node is dead, which is long before the
// lease ends.
func TestLeasesOfADeadNodeEnd(t *testing.T) {
	t.Parallel()
	d, stuck, s := dbtest.Postgres(t), &service{}, &service{}
	called, released := make(chan struct{}, 1), make(chan struct{})
	stuck.answer = func(n *sdk.Notification) sdk.NotifyResult {
		called <- struct{}{}
		<-released
		return n.Delivered("late")
	}
	var dead atomic.Bool
	first := namedNode(t, d, stuck, notifications.Dependencies{Owner: "first"}, sdk.NotifierProperties{}, "#sales")
	second := namedNode(t, d, s, notifications.Dependencies{
		Owner: "second", Dead: func(owner string) bool { return owner == "first" && dead.Load() },
	}, sdk.NotifierProperties{}, "#sales")
	startNodes(t, first)
	t.Cleanup(func() { close(released) }) // before first stops
	post(t, d, first, "ada")
	<-called
	post(t, d, second, "bob")
	startNodes(t, second)
	dead.Store(true)
	eventually(t, "both messages are sent", func() bool { return slices.Equal(s.heard(), []string{"ada", "bob"}) })
}

// TestClockOfDatabaseSetBack sends although the rate, a reservation and a pause are of a
// clock that was a day ahead.
func TestClockOfDatabaseSetBack(t *testing.T) {
	t.Parallel()
	d, s := dbtest.Postgres(t), &service{}
	ahead := time.Now().Add(24 * time.Hour).UnixMicro()
	for _, query := range []string{
		"INSERT INTO notifier_rates (notifier, destination, next_at) VALUES ('team', '', ?)",
		"INSERT INTO notification_lanes (notifier, destination, reserved_at) VALUES ('team', '#sales', ?)",
		"INSERT INTO notification_lanes (notifier, destination, paused_until) VALUES ('team', '#team', ?)",
	} {
		if _, err := d.Write(t.Context()).NewRaw(query, ahead).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	n := node(t, d, s, sdk.NotifierProperties{PerSecond: 100, Burst: 1}, "#sales", "#team")
	post(t, d, n, "ada")
	startNodes(t, n)
	eventually(t, "both messages are sent", func() bool { return len(s.heard()) == 2 })
}

// TestFirstMessageHasTheTimeOfTheDatabase queues a message on a node that has not sent any,
// and whose clock is an hour behind that of the database. Other nodes must not send it an
// hour late, nor let it expire early.
func TestFirstMessageHasTheTimeOfTheDatabase(t *testing.T) {
	t.Parallel()
	d := dbtest.Postgres(t)
	for _, query := range []string{
		"CREATE SCHEMA ahead",
		`CREATE FUNCTION ahead.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$ SELECT pg_catalog.clock_timestamp() + interval '1 hour' $$`,
		`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = ahead, pg_catalog, public', current_database()); END $$`,
	} {
		if _, err := d.Write(t.Context()).ExecContext(t.Context(), query); err != nil {
			t.Fatal(err)
		}
	}
	d.Pool().Reset() // new sessions have the clock
	post(t, d, node(t, d, &service{}, sdk.NotifierProperties{}, "#sales"), "ada")
	var created int64
	if err := d.Read(t.Context()).QueryRowContext(t.Context(), "SELECT created_at FROM notifications").Scan(&created); err != nil {
		t.Fatal(err)
	}
	if ahead := time.Until(time.UnixMicro(created)); ahead < 50*time.Minute {
		t.Errorf("the message is from %s ahead of the machine, want an hour", ahead)
	}
}
