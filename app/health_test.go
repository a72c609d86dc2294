package app_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
)

type healthAnswer struct {
	Node   struct{ ID, Version string }
	From   time.Time
	Step   int64
	Series []struct {
		Name, Unit string
		Values     []*float64
	}
}

// TestHealthPaths asks two servers for their series: each has its own, from the metrics of
// all parts, on Postgres.
func TestHealthPaths(t *testing.T) {
	nodes := serveNodes(t, 2)
	read := func(s *server, query string) (a healthAnswer) {
		t.Helper()
		code, raw, _ := s.request(t, http.MethodGet, s.URL+"/api/health/series?"+query, "")
		if code != http.StatusOK {
			t.Fatalf("%s: status %d: %s", query, code, raw)
		}
		if err := json.Unmarshal([]byte(raw), &a); err != nil {
			t.Fatal(err)
		}
		return a
	}
	ids := map[string]bool{}
	for _, s := range nodes {
		a := read(s, "")
		ids[a.Node.ID] = true
		if a.Step != 15 || a.Node.Version != "test" || time.Since(a.From) > time.Hour+time.Minute {
			t.Errorf("node %+v, from %v in steps of %d s; want an hour each 15 s", a.Node, a.From, a.Step)
		}
		found := map[string]bool{}
		for _, series := range a.Series {
			if len(series.Values) != len(a.Series[0].Values) || series.Unit == "" {
				t.Errorf("%s (%s) has %d values", series.Name, series.Unit, len(series.Values))
			}
			if last := series.Values[len(series.Values)-1]; last != nil {
				found[series.Name] = true
			} else if before := series.Values[len(series.Values)-2]; before != nil { // a slot has just begun
				found[series.Name] = true
			}
		}
		for _, name := range []string{"disk_free", "disk_used", "memory", "heap", "goroutines", "lag_worker"} {
			if !found[name] {
				t.Errorf("no value of %s: there are %v", name, found)
			}
		}
		if found["database_bytes"] {
			t.Error("there is a size of the SQLite file with Postgres")
		}
	}
	if len(ids) != 2 {
		t.Errorf("the nodes are %v; want two", ids)
	}
	s := nodes[0]
	if a := read(s, "names=cpu,heap&step=3600&from=2001-01-01T00:00:00Z"); len(a.Series) != 2 || a.Series[1].Name != "heap" || a.Step != 3600 || len(a.Series[0].Values) > 26 {
		t.Errorf("a day by the hour: %+v", a)
	}
	for _, query := range []string{"names=nothing", "from=yesterday", "step=0", "step=x", "from=2000000000&to=1000000000", "names=" + strings.Repeat("cpu,", 40) + "cpu"} {
		if code, raw, _ := s.request(t, http.MethodGet, s.URL+"/api/health/series?"+query, ""); code != http.StatusBadRequest || !strings.Contains(raw, `"attr"`) {
			t.Errorf("%.40s: %d %s; want 400 with the field", query, code, raw)
		}
	}
	for _, base := range []string{s.URL, s.AdminURL} {
		code, raw, _ := s.request(t, http.MethodGet, base+"/api/health", "")
		if code != http.StatusOK || !strings.Contains(raw, `"status":"ready"`) || !strings.Contains(raw, `"ingestion":{`) {
			t.Errorf("%s/api/health: %d %s", base, code, raw)
		}
	}
}
