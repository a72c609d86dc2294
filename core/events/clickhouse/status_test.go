package clickhouse

import (
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap/zaptest"

	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/events/clickhouse/health"
)

// fakeServer answers as a ClickHouse of a version, which has no tables. granted allows to read
// system.mutations.
func fakeServer(version *atomic.Value, granted *atomic.Bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		statement, _ := io.ReadAll(r.Body)
		switch text := string(statement); {
		case strings.HasPrefix(text, "SELECT version()"):
			_, _ = w.Write(appendString(nil, version.Load().(string)))
		case strings.Contains(text, "FROM system.tables WHERE"), strings.Contains(text, "FROM system.columns WHERE database = 'system'"), text == "SELECT 1":
		case strings.Contains(text, "FROM system.mutations WHERE") && granted.Load():
		default:
			w.Header().Set("X-ClickHouse-Exception-Code", "497")
			w.WriteHeader(http.StatusForbidden)
			_, _ = fmt.Fprint(w, "Code: 497. DB::Exception: Not enough privileges.")
		}
	})
}

// value returns the value of a gauge.
func value(t *testing.T, reg *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}

// waitFor waits until the status of s has a state.
func waitFor(t *testing.T, s *Store, state, message string) {
	t.Helper()
	var st health.Status
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if st = s.health.Current(); st.State == state && strings.Contains(st.Message, message) {
			return
		}
	}
	t.Fatalf("the status is %+v, not %s %q", st, state, message)
}

// A ClickHouse that is away or refuses events at the start is in the status, until it works.
func TestTroubleAtTheStartIsVisible(t *testing.T) {
	var version atomic.Value
	var granted atomic.Bool
	version.Store("17.1.3.4")
	server := httptest.NewUnstartedServer(fakeServer(&version, &granted))
	defer server.Close()
	cfg, d := events.DefaultConfig(), dbtest.Postgres(t)
	cfg.URL = "clickhouse://" + server.Listener.Addr().String() + "/guidon"
	unused := httptest.NewServer(nil)
	unused.Close()
	away := cfg
	away.URL = "clickhouse://" + unused.Listener.Addr().String()
	for _, test := range []struct {
		cfg            events.Config
		state, message string
	}{{away, health.Unavailable, "not reachable"}, {cfg, health.Refused, "ClickHouse 17.1.3.4 is too old"}} {
		if test.state == health.Refused {
			server.Start()
		}
		s, err := New(test.cfg, d, events.NewShared(d), zaptest.NewLogger(t))
		if err != nil {
			t.Fatal(err)
		}
		reg := prometheus.NewRegistry()
		if err := s.Register(reg); err != nil {
			t.Fatal(err)
		}
		if st, ok := s.Status().(health.Status); !ok || st.State != health.Starting || st.Degraded() {
			t.Errorf("before the start: %+v", st)
		}
		s.Start()
		defer s.Stop()
		waitFor(t, s, test.state, test.message)
		if !s.health.Current().Degraded() {
			t.Errorf("%s is not degraded", test.state)
		}
		if up := value(t, reg, "guidon_events_clickhouse_up"); up != 0 {
			t.Errorf("guidon_events_clickhouse_up is %v", up)
		}
		if test.state == health.Refused { // the next trouble after the first one is repaired
			version.Store("24.8.1.1")
			waitFor(t, s, health.Refused, "Not enough privileges")
		}
	}
}

func TestCheck(t *testing.T) {
	var version atomic.Value
	var granted atomic.Bool
	version.Store("24.8.1.1")
	server := httptest.NewTLSServer(fakeServer(&version, &granted))
	defer server.Close()
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	ca := write("ca.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	host := "clickhouses://" + server.Listener.Addr().String() + "/db"
	if _, err := Check(t.Context(), host+"?ca_file="+ca); err == nil || !strings.Contains(err.Error(), "read system.mutations: ClickHouse refused (497)") || !Reached(err) {
		t.Errorf("without the right to read system.mutations: %v", err)
	}
	granted.Store(true)
	if v, err := Check(t.Context(), host+"?ca_file="+ca); err != nil || v != "24.8" {
		t.Errorf("with the certificate: %q %v", v, err)
	}
	version.Store("17.1")
	for name, test := range map[string]struct {
		url, want string
		reached   bool
	}{
		"an old version":           {host + "?ca_file=" + ca, "too old", true},
		"an unknown certificate":   {host, "certificate", false},
		"an empty file":            {host + "?ca_file=" + write("empty.pem", nil), "no certificate", false},
		"a missing file":           {host + "?ca_file=" + dir + "/none", "ca_file", false},
		"a file without TLS":       {"clickhouse://h/db?ca_file=" + ca, "needs clickhouses", false},
		"plain text to a TLS port": {"clickhouse://" + server.Listener.Addr().String(), "400", true},
	} {
		if _, err := Check(t.Context(), test.url); err == nil || !strings.Contains(err.Error(), test.want) || Reached(err) != test.reached {
			t.Errorf("%s: %v (reached: %v)", name, err, Reached(err))
		}
	}
}
