package db_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
)

// TestMetrics checks that statements and connections are counted by pool and kind.
func TestMetrics(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		reg := prometheus.NewRegistry()
		if err := db.Register(d, reg); err != nil {
			t.Fatal(err)
		}
		pool := "write"
		if d.Postgres() {
			pool = "postgres"
		}
		before := series(t, reg)
		err := d.Tx(t.Context(), func(ctx context.Context) error {
			_, err := d.Write(ctx).ExecContext(ctx, "UPDATE projects SET name = name")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		after := series(t, reg)
		for _, kind := range []string{"exec", "commit"} {
			name := fmt.Sprintf("guidon_database_query_seconds kind=%s pool=%s", kind, pool)
			if after[name] <= before[name] {
				t.Errorf("%s: %v after %v", name, after[name], before[name])
			}
		}
		if after["guidon_database_connections_max pool="+pool] < 1 {
			t.Errorf("no bound of connections in %v", after)
		}
		if !d.Postgres() && after["guidon_database_file_bytes"] == 0 {
			t.Errorf("no size of the file in %v", after)
		}
	})
}

// series returns values by name and labels; of a histogram, the count.
func series(t *testing.T, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := []string{f.GetName()}
			for _, l := range m.GetLabel() {
				name = append(name, l.GetName()+"="+l.GetValue())
			}
			value := m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
			out[strings.Join(name, " ")] = value
		}
	}
	return out
}
