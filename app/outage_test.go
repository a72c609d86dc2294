package app_test

import (
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
)

// The database goes away under a running server: capture and decide go on, and
// the management interface says when to come back instead of failing.
func TestTheDatabaseGoesAway(t *testing.T) {
	t.Parallel()
	road := newRoad(t, dbtest.PostgresURL(t))
	s := serve(t, func(c *app.Config) { c.Database = db.Config{URL: road.url} })
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
	if status, answer, _ := ask(http.MethodPost, "/capture/", `{"api_key":"`+s.ProjectKey+`","event":"e","distinct_id":"u"}`); status != http.StatusOK {
		t.Errorf("capture: %s", answer)
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
	deadline := time.Now().Add(20 * time.Second)
	for {
		status, answer, _ := ask(http.MethodGet, "/api/projects/1/events/?event=e", "")
		if status == http.StatusOK && strings.Contains(answer, `"distinct_id":"u"`) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the event that was accepted meanwhile is not processed: %d %s", status, answer)
		}
		time.Sleep(20 * time.Millisecond)
	}
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
