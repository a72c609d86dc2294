//go:build e2e

package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"testing"
)

// What a load of a page may take at best of eight, in milliseconds: the first contentful
// paint, measured in 116 to 260 on two busy cores, and the CPU time of scripts (45 to 83; Health,
// which draws ten charts, has chartsCPU and took 125). A machine on
// which a plain page of the server takes long has plainFactor times its paint. layoutShift is
// the largest sum of shifts of any load; 0.1 is the limit of a good page by Web Vitals.
const (
	firstPaint  = 400
	plainFactor = 4
	scriptCPU   = 100
	chartsCPU   = 200
	layoutShift = 0.1
)

// loaded is what budget.mjs measured of a page: the best and the median first paint, and the
// best paint of a plain page in the same time; the worst shift and the least CPU of scripts.
type loaded struct {
	Page                        string
	Paint, Median, Plain, Shift float64
	Script                      float64
}

// TestConsoleBudget loads pages with some content. Each paints and keeps its layout still.
// With CONSOLE_BUDGET=1 (make console-budget), on a machine at rest, it also compares what a
// load takes with the limits.
func TestConsoleBudget(t *testing.T) {
	longTest(t)
	timed := os.Getenv("CONSOLE_BUDGET") != ""
	s := start(t)
	for i := range 60 {
		s.do(t, http.MethodPost, "/api/projects/1/feature_flags/", map[string]any{"key": fmt.Sprintf("flag-%02d", i), "name": "A flag of the shop"}, nil, http.StatusCreated)
	}
	if err := s.write(t.Context(), "/batch/", s.people(0, 200)); err != nil {
		t.Fatal(err)
	}
	for _, v := range inBrowser(t, s, "budget.mjs", nil).Loads {
		limit := max(firstPaint, plainFactor*v.Plain)
		t.Logf("%s: first paint %.0f ms (median %.0f, a plain page %.0f, limit %.0f), layout shift %.3f, %.0f ms of CPU in scripts", v.Page, v.Paint, v.Median, v.Plain, limit, v.Shift, v.Script)
		if v.Paint <= 0 {
			t.Errorf("%s: nothing was painted", v.Page)
		}
		if timed && v.Paint > limit {
			t.Errorf("%s: first paint after %.0f ms at best; the limit is %.0f", v.Page, v.Paint, limit)
		}
		if v.Shift > layoutShift {
			t.Errorf("%s: the layout shifts by %.3f; the limit is %.1f", v.Page, v.Shift, layoutShift)
		}
		cpu := scriptCPU
		if v.Page == "Health" {
			cpu = chartsCPU
		}
		if timed && v.Script > float64(cpu) {
			t.Errorf("%s: %.0f ms of CPU in scripts; the limit is %d", v.Page, v.Script, cpu)
		}
	}
}
