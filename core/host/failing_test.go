package host_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/host/lifecycle"
)

// A plugin whose process is well and that does none of its work is degraded, until it
// works again.
func TestFailuresInARowMakeAnInstanceDegraded(t *testing.T) {
	t.Parallel()
	for word, says := range map[string]string{"throttled": "slow down", "panic": "no luck", "ahead": "committed", "empty": "outcome"} {
		t.Run(word, func(t *testing.T) {
			t.Parallel()
			r := start(t, config(instance("p", "probe", nil)))
			s := r.sink(t)
			for n := range 10 {
				if st := r.Status()[0]; n < 5 && st.State != lifecycle.StateReady {
					t.Fatalf("%s after %d failures", st.State, n)
				}
				_, _ = s.Write(t.Context(), batch(fmt.Sprint(word, "-", n), 0, 1))
			}
			st := r.becomes(t, lifecycle.StateDegraded)
			if st.Reason != "failing" || !strings.Contains(st.LastError, says) || st.Restarts != 0 {
				t.Errorf("status %+v", st)
			}
			checked := r.healthChecks(t, true)
			eventually(t, func() string {
				if r.healthChecks(t, true) < checked+3 {
					return "no health checks"
				}
				return ""
			})
			if st := r.Status()[0]; st.State != lifecycle.StateDegraded {
				t.Errorf("a health check made it %s", st.State)
			}
			write(t, s, batch("ok", 0, 1))
			if st := r.Status()[0]; st.State != lifecycle.StateReady || st.Reason != "" {
				t.Errorf("after a success: %+v", st)
			}
		})
	}
}

// healthChecks returns how many health checks have passed, or how many have failed.
func (r *run) healthChecks(t *testing.T, passed bool) (n uint64) {
	t.Helper()
	families, err := r.metrics.Gather()
	if err != nil {
		t.Error(err)
	}
	for _, family := range families {
		if family.GetName() != "guidon_plugin_call_seconds" {
			continue
		}
		for _, series := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range series.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			if labels["method"] == "health" && (labels["outcome"] == "ok") == passed {
				n += series.GetHistogram().GetSampleCount()
			}
		}
	}
	return n
}

func TestPermanentRefusalsAreAnswers(t *testing.T) {
	t.Parallel()
	r := start(t, config(instance("p", "probe", map[string]any{"secret": "hunter2"})))
	s := r.sink(t)
	for n := range 10 {
		write(t, s, batch(fmt.Sprint("leak-", n), uint64(n), 1))
	}
	if st := r.Status()[0]; st.State != lifecycle.StateReady {
		t.Errorf("status %+v", st)
	}
}

// A process that reports that it is healthy and answers no call is restarted.
func TestProcessWithoutAnswersIsRestarted(t *testing.T) {
	t.Parallel()
	r := start(t, config(hanging(instance("p", "probe", nil), 200*time.Millisecond)))
	s := r.sink(t)
	n := 0
	eventually(t, func() string {
		_, _ = s.Write(t.Context(), batch(fmt.Sprint("hang-", n), 0, 1))
		n++
		if st := r.Status()[0]; st.Restarts == 0 {
			return fmt.Sprintf("%+v", st)
		}
		return ""
	})
	if st := r.Status()[0]; !strings.Contains(st.LastError, "5 calls in a row did not return within 200ms") {
		t.Errorf("status %+v", st)
	}
	writes(t, s, batch("ok", 0, 1))
	r.becomes(t, lifecycle.StateReady)
}
