package eventapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/events/eventapi"
	"github.com/guidonhq/guidon/core/events/tail"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web/webtest"
	"github.com/guidonhq/guidon/sdk"
)

// credentials has keys and sessions that a test revokes.
type credentials struct {
	webtest.Keys
	mu      sync.Mutex
	revoked bool
	rights  []string // of the principal
}

func (c *credentials) check(p *auth.Principal, err error) (*auth.Principal, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.revoked {
		return nil, fault.New(fault.Unauthenticated, "session_invalid", "The session has ended: sign in again.")
	}
	if err == nil && c.rights != nil {
		changed := *p
		changed.Scopes = c.rights
		return &changed, nil
	}
	return p, err
}

func (c *credentials) PrincipalByKey(ctx context.Context, key string) (*auth.Principal, error) {
	return c.check(c.Keys.PrincipalByKey(ctx, key))
}

func (c *credentials) PrincipalBySession(ctx context.Context, token string) (*auth.Principal, error) {
	if token != "gds_test" {
		return nil, fault.New(fault.Unauthenticated, "session_invalid", "The session has ended: sign in again.")
	}
	p, err := c.Keys.PrincipalByKey(ctx, "phx_test")
	if err != nil {
		return nil, err
	}
	session := *p
	session.KeyID, session.SessionID = 0, 7
	return c.check(&session, nil)
}

func (c *credentials) change(revoked bool, rights ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.revoked, c.rights = revoked, rights
}

// world is a server with live events.
type world struct {
	t      testing.TB
	db     *db.DB
	events *events.Service
	hub    *tail.Hub
	who    *credentials
	base   string
	stored int
}

func newWorld(t testing.TB, d *db.DB, limit int, change func(*tail.Times)) *world {
	t.Helper()
	times := tail.DefaultTimes()
	times.Poll, times.Settle, times.Check, times.Heartbeat = 10*time.Millisecond, 20*time.Millisecond, 20*time.Millisecond, time.Second
	if change != nil {
		change(&times)
	}
	w := &world{t: t, db: d, events: events.New(events.DefaultConfig(), d, zap.NewNop(), nil), who: &credentials{Keys: webtest.DefaultKeys()}}
	w.hub = eventapi.NewHub(w.events, d, limit, times, nil, nil)
	if err := w.hub.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.hub.Stop(context.Background()) })
	s := webtest.Start(t, webtest.Config(), w.who, zap.NewNop(), nil, eventapi.NewHTTP(w.events, w.hub))
	s.UseSessions(w.who)
	w.base = "http://" + s.Address() + "/api/projects/1/events/stream"
	return w
}

// store stores an event of project 1 and returns its uuid.
func (w *world) store(name, distinctID, properties string) string {
	w.t.Helper()
	return w.storeAll(1, name, distinctID, properties)[0]
}

func (w *world) storeAll(n int, name, distinctID, properties string) []string {
	w.t.Helper()
	ids := make([]string, n)
	for done := 0; done < n; done += 5000 {
		var batch []*sdk.Event
		for i := done; i < min(n, done+5000); i++ {
			w.stored++
			ids[i] = uuid.NewSHA1(uuid.Nil, strconv.AppendInt(nil, int64(w.stored), 10)).String()
			batch = append(batch, &sdk.Event{
				UUID: ids[i], ProjectID: 1, Name: name, DistinctID: distinctID,
				Timestamp: time.Now(), ReceivedAt: time.Now(), Properties: json.RawMessage(properties),
			})
		}
		if _, err := w.events.Store(w.t.Context(), batch); err != nil {
			w.t.Fatal(err)
		}
	}
	return ids
}

// message is a message of a stream.
type message struct {
	id, name string
	data     map[string]any
}

type reader struct {
	t   testing.TB
	res *http.Response
	in  *bufio.Reader
}

func (w *world) ask(query string, header ...string) *http.Response {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	w.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.base+query, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	if len(header) == 0 {
		header = []string{"Authorization", "Bearer phx_test"}
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// open opens a stream and waits until it is ready.
func (w *world) open(query string, header ...string) *reader {
	w.t.Helper()
	res := w.ask(query, header...)
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
		body, _ := io.ReadAll(res.Body)
		w.t.Fatalf("%s: %d %s", query, res.StatusCode, body)
	}
	r := &reader{w.t, res, bufio.NewReaderSize(res.Body, 64<<10)}
	if m := r.next(); m.name != "ready" || m.id == "" {
		w.t.Fatalf("got %v, want ready", m)
	}
	return r
}

// next returns the next message, an empty one at the end.
func (r *reader) next() (m message) {
	for {
		line, err := r.in.ReadString('\n')
		if err != nil {
			return message{}
		}
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch {
		case field == "" && m.name != "":
			return m
		case field == "id":
			m.id = value
		case field == "event":
			m.name = value
		case field == "data":
			if err := json.Unmarshal([]byte(value), &m.data); err != nil {
				r.t.Errorf("%s: %v", value, err)
			}
		}
	}
}

func (r *reader) expect(name, field string, want any) message {
	r.t.Helper()
	m := r.next()
	if m.name != name || fmt.Sprint(m.data[field]) != fmt.Sprint(want) {
		r.t.Fatalf("got %s %v, want %s with %s %v", m.name, m.data, name, field, want)
	}
	return m
}

func TestStreamShowsWhatMatches(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		w := newWorld(t, d, 50, nil)
		w.store("before", "u", `{}`)
		property := url.QueryEscape(`[{"key":"plan","value":"pro","operator":"exact"}]`)
		all, named := w.open(""), w.open("?event=buy")
		person, paid := w.open("?distinct_id=u2"), w.open("?properties="+property)
		byCookie := w.open("?event=buy", "Cookie", "guidon_session=gds_test")
		one := w.store("view", "u1", `{"plan":"free"}`)
		two := w.store("buy", "u2", `{"plan":"pro","html":"<b>\u2028"}`)
		m := all.expect("event", "uuid", one)
		if m.data["event"] != "view" || m.data["distinct_id"] != "u1" || m.data["person"] != nil || m.data["project_id"] != 1.0 {
			t.Errorf("got %v", m.data)
		}
		all.expect("event", "uuid", two)
		named.expect("event", "uuid", two)
		person.expect("event", "uuid", two)
		byCookie.expect("event", "uuid", two)
		if m := paid.expect("event", "uuid", two); fmt.Sprint(m.data["properties"]) != fmt.Sprint(map[string]any{"plan": "pro", "html": "<b>\u2028"}) {
			t.Errorf("got %v", m.data["properties"])
		}
	})
}

func TestStreamOfAPerson(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		w := newWorld(t, d, 50, nil)
		id := uuid.NewString()
		err := d.Tx(t.Context(), func(ctx context.Context) error {
			for _, q := range []string{
				`INSERT INTO persons (id, project_id, uuid, created_at, updated_at, properties, is_identified) VALUES (11, 1, '` + id + `', 0, 0, '{"country":"SE"}', TRUE)`,
				`INSERT INTO person_distinct_ids (project_id, distinct_id, person_id, added_at) VALUES (1, 'ada', 11, 0), (1, 'ada2', 11, 0)`,
			} {
				if _, err := d.Write(ctx).NewRaw(q).Exec(ctx); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		byUUID, byNumber := w.open("?person_id="+id), w.open("?person_id=11")
		byProperty := w.open("?properties=" + url.QueryEscape(`[{"type":"person","key":"country","value":"SE","operator":"exact"}]`))
		w.store("e", "somebody", `{}`)
		one, two := w.store("e", "ada", `{}`), w.store("e", "ada2", `{}`)
		for _, r := range []*reader{byUUID, byNumber, byProperty} {
			if m := r.expect("event", "uuid", one); m.data["person_id"] != id || m.data["person"] != nil {
				t.Errorf("got %v", m.data)
			}
			r.expect("event", "uuid", two)
		}
	})
}

func TestStreamRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, dbtest.SQLite(t), 3, nil) // so at most two of one project
	for _, c := range []struct {
		query  string
		status int
		header []string
	}{
		{"?person_id=x", 400, nil}, {"?person_id=0", 400, nil}, {"?person_id=-1", 400, nil}, {"?properties=x", 400, nil}, {"?last_event_id=x", 400, nil},
		{"", 401, []string{"Authorization", "Bearer phx_no"}}, {"", 401, []string{"Cookie", "guidon_session=gds_no"}},
	} {
		if res := w.ask(c.query, c.header...); res.StatusCode != c.status {
			t.Errorf("%s %v: %d", c.query, c.header, res.StatusCode)
		}
	}
	w.open("")
	second := w.open("")
	if res := w.ask(""); res.StatusCode != http.StatusTooManyRequests || res.Header.Get("Retry-After") == "" {
		t.Errorf("the third viewer of a project: %d", res.StatusCode)
	}
	res := w.ask("", "Authorization", "Bearer phx_test", "Accept", "application/json")
	if body, _ := io.ReadAll(res.Body); string(body) != `{"max_viewers":3,"max_rate":500}` {
		t.Errorf("got %s", body)
	}
	_ = second.res.Body.Close()
	eventually(t, "the place is free again", func() bool { return w.hub.Viewers() == 1 })
	w.open("")
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within a minute", what)
		}
	}
}

func TestStreamEndsWithItsCredential(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		header []string
		change func(*credentials)
		code   string
	}{
		"session revoked": {[]string{"Cookie", "guidon_session=gds_test"}, func(c *credentials) { c.change(true) }, "session_invalid"},
		"key revoked":     {nil, func(c *credentials) { c.change(true) }, "session_invalid"},
		"scope lost":      {nil, func(c *credentials) { c.change(false, "feature_flag:read") }, "permission_denied"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, dbtest.SQLite(t), 50, nil)
			r := w.open("", c.header...)
			r.expect("event", "uuid", w.store("e", "u", `{}`))
			c.change(w.who)
			r.expect("end", "code", c.code)
			if m := r.next(); m.name != "" {
				t.Errorf("after the end: %v", m)
			}
			eventually(t, "the place is free", func() bool { return w.hub.Viewers() == 0 })
		})
	}
}

func TestStreamEndsAtAStop(t *testing.T) {
	t.Parallel()
	w := newWorld(t, dbtest.SQLite(t), 50, nil)
	r := w.open("")
	if err := w.hub.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.expect("end", "code", "stopped")
	if m := r.next(); m.name != "" {
		t.Errorf("after the end: %v", m)
	}
}

func TestStreamResumes(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		w := newWorld(t, d, 50, nil)
		r := w.open("")
		last := r.expect("event", "uuid", w.store("e", "u", `{}`))
		_ = r.res.Body.Close()
		missed := w.store("e", "u", `{}`)
		other := w.open("") // keeps the topic ahead
		again := w.open("?last_event_id=" + last.id)
		m := again.expect("event", "uuid", missed)
		if d.Postgres() { // rows before the position are sent again: one may have become visible late
			again.expect("event", "uuid", last.data["uuid"])
		}
		later := w.store("e", "u", `{}`)
		again.expect("event", "uuid", later)
		for m := other.next(); m.data["uuid"] != later; m = other.next() { // may begin a poll earlier
			if m.data["uuid"] != missed {
				t.Fatalf("got %v", m)
			}
		}
		header := w.open("", "Authorization", "Bearer phx_test", "Last-Event-ID", m.id)
		header.expect("event", "uuid", later)
		future := w.open("?last_event_id=99999999")
		future.expect("reset", "position", int64(w.stored))
		w.storeAll(1000, "many", "u", `{}`)
		eventually(t, "too much was missed", func() bool { // once the topic has read it
			old := w.open("?last_event_id=" + last.id)
			defer func() { _ = old.res.Body.Close() }()
			return old.next().name == "reset"
		})
	})
}

// What a viewer does not get is counted: nothing is lost silently.
func TestStreamSaysWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, dbtest.SQLite(t), 50, nil)
	r := w.open("?event=many")
	const total = 6000
	w.storeAll(total, "many", "u", `{}`)
	shown, skipped := 0, 0
	for shown+skipped < total {
		m := r.next()
		switch m.name {
		case "event":
			shown++
		case "skipped":
			if m.data["reason"] == "slow" {
				t.Error("the reader was not slow")
			}
			n, _ := m.data["count"].(float64)
			skipped += int(n)
		default:
			t.Fatalf("got %v", m)
		}
	}
	if shown+skipped != total || shown < tail.MaxRate || skipped == 0 {
		t.Errorf("%d shown and %d skipped of %d", shown, skipped, total)
	}
}

// silent opens a stream of a client that does not read.
func (w *world) silent() net.Conn {
	w.t.Helper()
	u, err := url.Parse(w.base)
	if err != nil {
		w.t.Fatal(err)
	}
	c, err := net.Dial("tcp", u.Host)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = c.Close() })
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\nAuthorization: Bearer phx_test\r\n\r\n", u.RequestURI()); err != nil {
		w.t.Fatal(err)
	}
	return c
}

// A viewer that does not read slows neither ingestion nor other viewers. It gets counts
// when it reads again, and loses its stream when it does not.
func TestSlowViewer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, dbtest.SQLite(t), 50, func(t *tail.Times) { t.Write = 2 * time.Minute })
	slow := w.silent()
	reader := w.open("?event=small")
	eventually(t, "both watch", func() bool { return w.hub.Viewers() == 2 })
	big := `{"text":"` + strings.Repeat("x", 256<<10) + `"}`
	const total = 100 // 25 MB: more than the buffers of the system
	for range total {
		w.store("big", "u", big)
		began := time.Now()
		reader.expect("event", "uuid", w.store("small", "u", `{}`))
		if took := time.Since(began); took > 10*time.Second {
			t.Fatalf("the other viewer waited %s", took)
		}
	}
	_ = slow.SetReadDeadline(time.Now().Add(2 * time.Minute))
	r := &reader2{bufio.NewReaderSize(slow, 1<<20)}
	shown, skipped := r.count(t, 2*total)
	if shown == 0 || skipped < total/2 || shown+skipped != 2*total {
		t.Errorf("%d shown and %d skipped of %d", shown, skipped, 2*total)
	}
}

// reader2 reads messages from a connection.
type reader2 struct{ in *bufio.Reader }

// count reads until n events are shown or counted.
func (r *reader2) count(t *testing.T, n int) (shown, skipped int) {
	t.Helper()
	slow := false
	for shown+skipped < n {
		line, err := r.in.ReadString('\n')
		if err != nil {
			t.Fatalf("%d shown, %d skipped: %v", shown, skipped, err)
		}
		switch {
		case line == "event: event\n":
			shown++
		case strings.HasPrefix(line, `data: {"count":`):
			var m struct {
				Count  int
				Reason string
			}
			if err := json.Unmarshal([]byte(line[len("data: "):]), &m); err != nil {
				t.Fatal(err)
			}
			skipped += m.Count
			slow = slow || m.Reason == "slow"
		}
	}
	if !slow {
		t.Error("no count has the reason slow")
	}
	return shown, skipped
}

func TestSilentViewerLosesItsStream(t *testing.T) {
	t.Parallel()
	w := newWorld(t, dbtest.SQLite(t), 50, func(t *tail.Times) { t.Write = 200 * time.Millisecond })
	w.silent()
	eventually(t, "it watches", func() bool { return w.hub.Viewers() == 1 })
	big := `{"text":"` + strings.Repeat("x", 512<<10) + `"}`
	eventually(t, "its stream ends", func() bool {
		w.store("big", "u", big)
		return w.hub.Viewers() == 0
	})
}

// A stop does not wait for a viewer that does not read.
func TestStopWithSilentViewer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, dbtest.SQLite(t), 50, nil)
	w.silent()
	eventually(t, "it watches", func() bool { return w.hub.Viewers() == 1 })
	for range 20 {
		w.store("big", "u", `{"text":"`+strings.Repeat("x", 512<<10)+`"}`)
	}
	began := time.Now()
	if err := w.hub.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the stop took %s", took)
	}
}

// On PostgreSQL a transaction may commit after one with later rows.
func TestStreamShowsLateRows(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		if !d.Postgres() {
			t.Skip("SQLite has one writer")
		}
		w := newWorld(t, d, 50, nil)
		r := w.open("")
		inserted, commit, done := make(chan string), make(chan struct{}), make(chan error, 1)
		go func() {
			done <- d.Tx(context.Background(), func(ctx context.Context) error {
				id := uuid.NewString()
				_, err := w.events.Store(ctx, []*sdk.Event{{UUID: id, ProjectID: 1, Name: "late", DistinctID: "u", Timestamp: time.Now(), ReceivedAt: time.Now(), Properties: json.RawMessage(`{}`)}})
				inserted <- id
				<-commit
				return err
			})
		}()
		late := <-inserted
		first := r.expect("event", "uuid", w.store("first", "u", `{}`))
		close(commit)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if m := r.expect("event", "uuid", late); m.id != first.id {
			t.Errorf("the id went from %s to %s", first.id, m.id)
		}
		r.expect("event", "uuid", w.store("last", "u", `{}`))
	})
}

// SQLite uses the numbers of the newest rows again after their deletion.
func TestStreamAfterDeletions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, dbtest.SQLite(t), 50, nil)
	w.storeAll(10, "old", "gone", `{}`)
	r := w.open("")
	if _, err := w.events.Erase(t.Context(), 1, []string{"gone"}); err != nil {
		t.Fatal(err)
	}
	shown := make(chan message, 1)
	go func() { shown <- r.next() }()
	eventually(t, "new events show", func() bool {
		w.store("new", "u", `{}`)
		select {
		case m := <-shown:
			return m.name == "event" && m.data["event"] == "new"
		default:
			return false
		}
	})
}
