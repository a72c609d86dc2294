package ingestion_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/core/ingestion/delivery/filter"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/sdk"
)

// fakeMatchers have the operator test/has: the property contains the value. "odd" cannot be
// judged.
type fakeMatchers struct {
	mu       sync.Mutex
	unknown  bool // there is no such operator
	open     bool // the value was not checked
	problem  error
	away     bool // calls have no answer
	reads    []string
	rounds   int
	received []string // values that were asked about
}

func (m *fakeMatchers) set(change func(*fakeMatchers)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(m)
}

func (m *fakeMatchers) Operator(id string) (match.ExternalOperator, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return match.ExternalOperator{Source: "test", Missing: match.False, Compile: func(value []byte) (match.Compiled, error) {
		m.mu.Lock()
		defer m.mu.Unlock()
		return match.Compiled{Program: match.Program(value), Open: m.open, Reads: m.reads}, m.problem
	}}, id == "test/has" && !m.unknown
}

func (m *fakeMatchers) NewRound() filter.Round {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rounds++
	return &fakeRound{m: m, pending: map[[2]string]bool{}}
}

type fakeRound struct {
	m        *fakeMatchers
	pending  map[[2]string]bool
	answered bool
	failed   string
}

func (r *fakeRound) Match(p match.Program, v *match.Value) match.Result {
	r.pending[[2]string{string(p), v.Content()}] = true
	if !r.answered || v.Content() == "odd" {
		return match.Unknown
	}
	return match.Of(strings.Contains(v.Content(), strings.Trim(string(p), `"`)))
}

func (r *fakeRound) Ask(context.Context) bool {
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	if r.m.away {
		r.failed = "test: unavailable"
		return true
	}
	for pair := range r.pending {
		r.m.received = append(r.m.received, pair[1])
	}
	r.answered = true
	return len(r.pending) > 0
}

func (r *fakeRound) Unanswered() string { return r.failed }

var hasVIP = settings.Delivery{Properties: []map[string]any{
	{"key": "plan", "operator": "test/has", "value": "pro"}, {"key": "n", "operator": "gt", "value": 1},
}}

func TestDeliverFiltersWithMatchers(t *testing.T) {
	t.Parallel()
	items := []string{
		`{"event":"a","distinct_id":"u","properties":{"plan":"pro","n":2}}`,
		`{"event":"b","distinct_id":"u","properties":{"plan":"free","n":2}}`,
		`{"event":"c","distinct_id":"u","properties":{"plan":"pro","n":1}}`,
		`{"event":"d","distinct_id":"u","properties":{"n":2}}`,
		`{"event":"e","distinct_id":"u","properties":{"plan":"odd","n":2}}`,
		`{"event":"f","distinct_id":"u","properties":{"plan":"pro+","n":3}}`,
	}
	for name, c := range map[string]struct {
		before, after func(*fakeMatchers)
		state, says   string
	}{
		"there at once":        {nil, nil, "", ""},
		"an unknown operator":  {func(m *fakeMatchers) { m.unknown = true }, func(m *fakeMatchers) { m.unknown = false }, "waiting_for_matcher", "no matcher has the operator"},
		"not started":          {func(m *fakeMatchers) { m.open = true }, func(m *fakeMatchers) { m.open = false }, "waiting_for_matcher", "the matcher of test/has does not answer"},
		"away":                 {func(m *fakeMatchers) { m.away = true }, func(m *fakeMatchers) { m.away = false }, "waiting_for_matcher", "a matcher did not answer: test: unavailable"},
		"refusing the value":   {func(m *fakeMatchers) { m.problem = errors.New("no such plan") }, func(m *fakeMatchers) { m.problem = nil }, "misconfigured", "no such plan"},
		"reading other values": {func(m *fakeMatchers) { m.reads = []string{"plan", "n"} }, nil, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
			lay(t, j, false, items...)
			m := &fakeMatchers{}
			if c.before != nil {
				m.set(c.before)
			}
			s := configured{&fakeSink{name: "one"}, hasVIP}
			del := newDeliver(t, deliverConfig(), j, d, newSinks(&s))
			del.UseMatchers(m)
			runDeliver(t, del)
			if c.state != "" {
				eventually(t, "the state", func() bool {
					status, err := del.Status(t.Context())
					return err == nil && status[0].State == c.state && strings.Contains(status[0].LastError, c.says) && status[0].Blocked()
				})
				if s.has() != "" {
					t.Errorf("sent %q before the matcher answered", s.has())
				}
				if at := committed(t, j, "sink/one"); at.Count != 0 {
					t.Errorf("committed %+v before the matcher answered", at)
				}
				m.set(c.after)
			}
			eventually(t, "the cursor is behind all", func() bool { return committed(t, j, "sink/one").Count == 6 })
			if s.has() != "a f" {
				t.Errorf("got %q", s.has())
			}
			eventually(t, "no trouble", func() bool {
				status, err := del.Status(t.Context())
				return err == nil && !status[0].Blocked() && status[0].Filtered == 4
			})
			if name == "reading other values" && !strings.Contains(strings.Join(m.received, " "), `{"plan":"pro","n":2}`) {
				t.Errorf("asked about %s", m.received)
			}
		})
	}
}

// A delivery that waits for a matcher stops without delay.
func TestDeliverStopsWhileAMatcherIsAway(t *testing.T) {
	t.Parallel()
	d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
	lay(t, j, false, `{"event":"a","distinct_id":"u","properties":{"plan":"pro","n":2}}`)
	m := &fakeMatchers{away: true}
	s := configured{&fakeSink{name: "one"}, hasVIP}
	del := newDeliver(t, deliverConfig(), j, d, newSinks(&s))
	del.UseMatchers(m)
	runDeliver(t, del)
	eventually(t, "it asks", func() bool { m.mu.Lock(); defer m.mu.Unlock(); return m.rounds > 0 })
	stopDeliver(t, del)
	if s.has() != "" {
		t.Errorf("sent %q", s.has())
	}
}

// The sink sees hashed ids; dead letters keep the true ones for erasures, and a replay
// sends the hashed ones again.
func TestDeliverRedactsIDs(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, testRedactsIDs)
}

func testRedactsIDs(t *testing.T, d *db.DB) {
	j := openJournal(t, t.TempDir())
	const id = "0190a5a2-7b3c-7000-8000-0000000000ff"
	lay(t, j, false, `{"event":"poison","distinct_id":"ada@example.com","uuid":"`+id+`","properties":{"$set":{"email":"ada@example.com"}}}`)
	s := configured{&fakeSink{name: "one", write: rejects(sdk.ClassPermanent)}, settings.Delivery{
		Redact: settings.Redaction{Hash: []string{"distinct_id", "uuid", "$set.email"}, HashKey: "k"},
	}}
	del := startDeliver(t, deliverConfig(), j, d, newSinks(&s))
	eventually(t, "the dead letter", func() bool { return letters(t, d) == "poison" })
	first := s.sent()[0].Records[0]
	var letter struct {
		DistinctID, EventUUID, Payload string
	}
	if err := d.Read(t.Context()).NewRaw("SELECT distinct_id, event_uuid, payload FROM dead_letters").Scan(t.Context(), &letter.DistinctID, &letter.EventUUID, &letter.Payload); err != nil {
		t.Fatal(err)
	}
	if letter.DistinctID != "ada@example.com" || letter.EventUUID != id || strings.Count(letter.Payload, "ada@example.com") != 1 {
		t.Errorf("dead letter %+v", letter)
	}
	s.mu.Lock()
	s.write = nil
	s.mu.Unlock()
	var ev sdk.Event
	if err := json.Unmarshal([]byte(letter.Payload), &ev); err != nil {
		t.Fatal(err)
	}
	if err := del.Replay(t.Context(), "one", ev, 1, 1); err != nil {
		t.Fatal(err)
	}
	sent := s.sent()
	again := sent[len(sent)-1].Records[0]
	for _, r := range []sdk.Record{first, again} {
		if strings.Contains(string(r.JSON), "ada@") || strings.Contains(string(r.JSON), id) || r.UUID != first.UUID {
			t.Errorf("sent %s", r.JSON)
		}
	}
}
