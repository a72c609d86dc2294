package app_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
)

// The database goes away under a running server: capture and decide go on, and
// the management interface says when to come back instead of failing.
func TestTheDatabaseGoesAway(t *testing.T) {
	t.Parallel()
	road := newRoad(t, dbtest.PostgresURL(t))
	s := serve(t, func(c *app.Config) {
		c.Database = db.Config{URL: road.url}
		c.Ingestion.Worker.RetryMax = 200 * time.Millisecond
	})
	s.manage(t, http.MethodPost, "/api/projects/1/feature_flags/", `{"key":"on","filters":{"groups":[{"properties":[],"rollout_percentage":100}]}}`)
	road.block(true)
	ask := func(method, path, body string) (int, string, http.Header) {
		req, err := http.NewRequest(method, s.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+s.PersonalKey)
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(b), res.Header
	}
	const n = 40 // events of one person, each overwriting what the one before it set
	for i := range n {
		body := fmt.Sprintf(`{"api_key":%q,"event":"e","distinct_id":"u","properties":{"$set":{"last":%d},"$set_once":{"first":%d}}}`, s.ProjectKey, i, i)
		if status, answer, _ := ask(http.MethodPost, "/capture/", body); status != http.StatusOK {
			t.Errorf("capture: %s", answer)
		}
	}
	if status, answer, _ := ask(http.MethodPost, "/decide?v=3", `{"api_key":"`+s.ProjectKey+`","distinct_id":"u"}`); status != http.StatusOK || !strings.Contains(answer, `"on":true`) {
		t.Errorf("decide: %s", answer)
	}
	for _, path := range []string{"/api/projects/1/feature_flags/", "/api/projects/1/events/", "/api/projects/1/persons/", "/api/projects/1/ingestion_warnings/"} {
		if status, answer, header := ask(http.MethodGet, path, ""); status != http.StatusServiceUnavailable || header.Get("Retry-After") == "" {
			t.Errorf("%s: %s", path, answer)
		}
	}
	road.block(false)
	for _, c := range []struct{ what, path, want string }{
		{"the events that were accepted meanwhile", "/api/projects/1/events/?event=e&limit=1000", fmt.Sprintf(`"last":%d`, n-1)},
		{"what the last of them set", "/api/projects/1/persons/?distinct_id=u", fmt.Sprintf(`"last":%d`, n-1)},
		{"what the first of them set", "/api/projects/1/persons/?distinct_id=u", `"first":0`},
	} {
		s.until(t, c.what, func() bool {
			status, answer, _ := ask(http.MethodGet, c.path, "")
			return status == http.StatusOK && strings.Contains(answer, c.want)
		})
	}
	s.until(t, "the sink has them in order", func() bool { return s.written(t, "last") == inOrder(n) })
}

// While the database is away for so long that the journal reaches its limit,
// capture tells clients when to come back; nothing it has acknowledged is lost,
// and it takes events again by itself.
func TestTheJournalIsFull(t *testing.T) {
	t.Parallel()
	road := newRoad(t, dbtest.PostgresURL(t))
	s := serve(t, func(c *app.Config) {
		c.Database = db.Config{URL: road.url}
		c.Journal.LimitBytes, c.Journal.MaxBytes = 200_000, 1
		c.Journal.TrimInterval = 20 * time.Millisecond
		c.Ingestion.Worker.RetryMax = 200 * time.Millisecond
	})
	road.block(true)
	filler := rand.Text() // not to be compressed away
	for len(filler) < 4000 {
		filler += rand.Text()
	}
	var kept []string
	capture := func() (int, http.Header, string) {
		id := uuid.NewString()
		body := fmt.Sprintf(`{"api_key":%q,"event":"full","uuid":%q,"distinct_id":"u","properties":{"text":%q}}`, s.ProjectKey, id, filler)
		res, err := http.Post(s.URL+"/capture/", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		answer, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode == http.StatusOK {
			kept = append(kept, id)
		}
		return res.StatusCode, res.Header, string(answer)
	}
	s.until(t, "capture refuses", func() bool {
		status, header, answer := capture()
		if status != http.StatusOK && (status != http.StatusServiceUnavailable || header.Get("Retry-After") == "" || !strings.Contains(answer, "journal_full")) {
			t.Fatalf("%d %s", status, answer)
		}
		return status == http.StatusServiceUnavailable
	})
	if res, err := http.Get(s.URL + "/_readiness"); err != nil || res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a server that takes no events calls itself ready (%v)", err)
	} else {
		res.Body.Close()
	}
	road.block(false)
	s.until(t, "capture takes events again", func() bool { status, _, _ := capture(); return status == http.StatusOK })
	s.until(t, "every acknowledged event is stored", func() bool {
		var stored []string
		if s.DB.Read(t.Context()).NewRaw("SELECT uuid FROM events WHERE event = 'full'").Scan(t.Context(), &stored) != nil {
			return false
		}
		slices.Sort(stored)
		slices.Sort(kept)
		return slices.Equal(stored, kept)
	})
}

// until waits for something to become true.
func (s *server) until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

// written is what the events in the file sink set the property to, in order.
func (s *server) written(t *testing.T, property string) string {
	t.Helper()
	data, err := os.ReadFile(s.Lines)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for line := range strings.Lines(string(data)) {
		var e struct {
			Properties struct {
				Set map[string]int `json:"$set"`
			} `json:"properties"`
		}
		if json.Unmarshal([]byte(line), &e) == nil {
			fmt.Fprintf(&b, "%d ", e.Properties.Set[property])
		}
	}
	return b.String()
}

// inOrder is the numbers below n.
func inOrder(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d ", i)
	}
	return b.String()
}

// road is a way to a Postgres server that can be blocked.
type road struct {
	url string

	mu      sync.Mutex
	blocked bool
	open    map[net.Conn]bool
}

func newRoad(t *testing.T, to string) *road {
	t.Helper()
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	network, address := "tcp", u.Host
	q := u.Query()
	if dir := q.Get("host"); dir != "" {
		network, address = "unix", filepath.Join(dir, ".s.PGSQL.5432")
		q.Del("host")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	u.Host, u.RawQuery = l.Addr().String(), q.Encode()
	r := &road{url: u.String(), open: map[net.Conn]bool{}}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go r.carry(c, network, address)
		}
	}()
	return r
}

func (r *road) carry(c net.Conn, network, address string) {
	there, err := net.Dial(network, address)
	r.mu.Lock()
	if err != nil || r.blocked {
		r.mu.Unlock()
		c.Close()
		return
	}
	r.open[c], r.open[there] = true, true
	r.mu.Unlock()
	go func() {
		_, _ = io.Copy(there, c)
		there.Close()
	}()
	_, _ = io.Copy(c, there)
	c.Close()
}

func (r *road) block(blocked bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.blocked = blocked
	for c := range r.open {
		c.Close()
		delete(r.open, c)
	}
}
