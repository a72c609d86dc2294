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

// TestDatabaseOutage blocks the database under a running server: capture and decide
// continue, and management requests are answered with 503 and Retry-After.
func TestDatabaseOutage(t *testing.T) {
	t.Parallel()
	proxy := newTCPProxy(t, dbtest.PostgresURL(t))
	s := serve(t, func(c *app.Config) {
		c.Database = db.Config{URL: proxy.url}
		c.Ingestion.Worker.RetryMax = 200 * time.Millisecond
	})
	s.mustManage(t, http.MethodPost, "/api/projects/1/feature_flags/", `{"key":"on","filters":{"groups":[{"properties":[],"rollout_percentage":100}]}}`)
	proxy.block(true)
	ask := func(method, path, body string) (int, string, http.Header) {
		return s.request(t, method, s.URL+path, body)
	}
	const n = 40 // events of one person, each setting the same property
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
		if status, answer, header := ask(http.MethodGet, path, ""); status != http.StatusServiceUnavailable || header.Get("Retry-After") == "" || !strings.Contains(answer, `"database_unavailable"`) {
			t.Errorf("%s: %s", path, answer)
		}
	}
	readiness := func(want string) func() bool {
		return func() bool {
			status, answer, _ := s.request(t, http.MethodGet, s.AdminURL+"/_readiness", "")
			return status == http.StatusOK && strings.Contains(answer, want)
		}
	}
	s.until(t, "readiness shows the outage", readiness(`"database":{"state":"lost"`))
	if !readiness(`"status":"degraded"`)() {
		t.Error("a server without its database is not degraded")
	}
	proxy.block(false)
	s.until(t, "readiness shows the end of the outage", readiness(`"database":{"state":"ok"}`))
	for _, c := range []struct{ what, path, want string }{
		{"the events accepted during the outage", "/api/projects/1/events/?event=e&limit=1000", fmt.Sprintf(`"last":%d`, n-1)},
		{"the property of the last event", "/api/projects/1/persons/?distinct_id=u", fmt.Sprintf(`"last":%d`, n-1)},
		{"the property of the first event", "/api/projects/1/persons/?distinct_id=u", `"first":0`},
	} {
		s.until(t, c.what, func() bool {
			status, answer, _ := ask(http.MethodGet, c.path, "")
			return status == http.StatusOK && strings.Contains(answer, c.want)
		})
	}
	s.until(t, "the sink has them in order", func() bool { return s.sinkValues(t, "last") == inOrder(n) })
}

// TestFullJournal blocks the database until the journal reaches its limit: capture
// answers 503 with Retry-After, no acknowledged event is lost, and capture resumes
// after the outage.
func TestFullJournal(t *testing.T) {
	t.Parallel()
	proxy := newTCPProxy(t, dbtest.PostgresURL(t))
	s := serve(t, func(c *app.Config) {
		c.Database = db.Config{URL: proxy.url}
		c.Journal.LimitBytes, c.Journal.MaxBytes = 200_000, 1
		c.Journal.TrimInterval = 20 * time.Millisecond
		c.Ingestion.Worker.RetryMax = 200 * time.Millisecond
	})
	proxy.block(true)
	filler := rand.Text() // does not compress
	for len(filler) < 4000 {
		filler += rand.Text()
	}
	var acked []string
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
			acked = append(acked, id)
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
		t.Errorf("/_readiness is not 503 while the journal is full (%v)", err)
	} else {
		res.Body.Close()
	}
	proxy.block(false)
	s.until(t, "capture accepts events again", func() bool { status, _, _ := capture(); return status == http.StatusOK })
	s.until(t, "every acknowledged event is stored", func() bool {
		var stored []string
		if s.DB.Read(t.Context()).NewRaw("SELECT uuid FROM events WHERE event = 'full'").Scan(t.Context(), &stored) != nil {
			return false
		}
		slices.Sort(stored)
		slices.Sort(acked)
		return slices.Equal(stored, acked)
	})
}

// patience limits the wait for something that must happen. It is long because the machine
// may be slow, and a test that passes does not use it.
const patience = 3 * time.Minute

// until waits until ok returns true.
func (s *server) until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timeout waiting until %s", what)
		}
	}
}

// sinkValues lists the values to which the events in the file sink set a property.
func (s *server) sinkValues(t *testing.T, property string) string {
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

// inOrder returns the numbers below n as sinkValues does.
func inOrder(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d ", i)
	}
	return b.String()
}

// tcpProxy forwards connections to a Postgres server and can be blocked.
type tcpProxy struct {
	url string

	mu      sync.Mutex
	blocked bool
	open    map[net.Conn]bool
}

func newTCPProxy(t *testing.T, to string) *tcpProxy {
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
	r := &tcpProxy{url: u.String(), open: map[net.Conn]bool{}}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go r.forward(c, network, address)
		}
	}()
	return r
}

func (p *tcpProxy) forward(c net.Conn, network, address string) {
	upstream, err := net.Dial(network, address)
	p.mu.Lock()
	if err != nil || p.blocked {
		p.mu.Unlock()
		c.Close()
		return
	}
	p.open[c], p.open[upstream] = true, true
	p.mu.Unlock()
	go func() {
		_, _ = io.Copy(upstream, c)
		upstream.Close()
	}()
	_, _ = io.Copy(c, upstream)
	c.Close()
}

func (p *tcpProxy) block(blocked bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.blocked = blocked
	for c := range p.open {
		c.Close()
		delete(p.open, c)
	}
}
