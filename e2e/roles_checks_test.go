//go:build e2e

package e2e_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// owned returns nil when a node sees this many partitions of each node.
func (f *fleet) owned(by *node, want map[string]int) func() error {
	return func() error {
		got, err := by.partitions(f.manage.personal)
		for name, n := range got {
			if n != want[name] {
				err = errors.Join(err, fmt.Errorf("%s has %d", name, n))
			}
		}
		if len(got) == 0 {
			err = errors.Join(err, errors.New("no nodes"))
		}
		return err
	}
}

// checkRefusedSets starts servers with sets of roles that cannot work.
func (f *fleet) checkRefusedSets(t *testing.T) {
	t.Helper()
	for set, want := range map[string]string{"process": "process and deliver go together", "deliver": "process and deliver go together", "write": "there is no role"} {
		if text, code := f.manage.run(t, "serve", "--roles", set); code != 1 || !strings.Contains(text, want) {
			t.Errorf("serve --roles %s ends with %d: %s", set, code, text)
		}
	}
}

// slowest is how late another server may see a change, or have taken over, on a busy
// machine. The promise is one second; the log of the test has the time.
const slowest = 30 * time.Second

// checkChange creates a flag where it is managed: the servers that decide follow.
func (f *fleet) checkChange(t *testing.T) {
	t.Helper()
	f.manage.do(t, http.MethodPost, "/api/projects/@current/feature_flags/", map[string]any{"key": "new", "active": true,
		"filters": map[string]any{"groups": []any{map[string]any{"rollout_percentage": 100}}}}, nil, http.StatusCreated)
	began := time.Now()
	for _, n := range []*node{f.edge, f.decide} {
		eventually(t, time.Minute, n.name+" decides the new flag", func() error {
			text, err := n.decided(f.manage.project)
			if err == nil && !strings.Contains(text, `"new":true`) {
				err = errors.New(text)
			}
			return err
		})
		took := time.Since(began)
		t.Logf("%s decides it after %s", n.name, took.Round(time.Millisecond))
		if took > slowest {
			t.Errorf("%s has followed after %s", n.name, took)
		}
	}
}

// decided returns the answer of /decide.
func (n *node) decided(project string) (string, error) {
	res, err := http.Post(n.url+"/decide?v=3", "application/json", bytes.NewReader(fmt.Appendf(nil, `{"api_key":%q,"distinct_id":"u"}`, project)))
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d: %s", res.StatusCode, raw)
	}
	return string(raw), err
}

// checkOperation checks what an operator sees of each server while events arrive.
func (f *fleet) checkOperation(t *testing.T) {
	t.Helper()
	const processed = "2 servers process the 6 partitions"
	for _, c := range []struct {
		node                *node
		roles               string
		has, lacks, metrics []string
		doctor              string
	}{
		{f.manage, "manage", []string{`"journal"`}, []string{`"ingestion"`}, nil, processed},
		{f.edge, "capture,decide", []string{`"journal"`}, []string{`"ingestion"`}, []string{"guidon_log_append_seconds_count "}, processed},
		{f.capture, "capture", []string{`"journal"`}, []string{`"ingestion"`}, []string{"guidon_log_append_seconds_count "}, processed},
		{f.first, "process,deliver", []string{`"journal"`, `"ingestion"`}, nil, []string{`guidon_log_last_record{`, `guidon_log_reader_lag_records{`, `reader="sink/lines"`}, processed},
		{f.second, "process,deliver", []string{`"journal"`, `"ingestion"`}, nil, []string{`guidon_log_last_record{`}, processed},
		{f.decide, "decide", nil, []string{`"journal"`, `"ingestion"`}, nil, "not used: the server has the role decide alone"},
	} {
		text, status := c.node.page(t, "/_readiness")
		if status != http.StatusOK {
			t.Errorf("%s is not ready: %d %s", c.node.name, status, text)
		}
		contains(t, c.node.name+" readiness", text, c.has, c.lacks)
		eventually(t, time.Minute, c.node.name+" has its metrics", func() error { // lags are published now and then
			text, status = c.node.page(t, "/metrics")
			for _, part := range append(c.metrics, "guidon_http_requests_total", "go_goroutines") {
				if status != http.StatusOK || !strings.Contains(text, part) {
					return fmt.Errorf("status %d, no %s", status, part)
				}
			}
			return nil
		})
		if strings.Contains(text, "guidon_log_last_record{") != strings.Contains(c.roles, "process") {
			t.Errorf("%s has metrics of partitions, or lacks them", c.node.name)
		}
		if text, code := c.node.run(t, "doctor", "--skip-integrity"); code != 0 || !strings.Contains(text, c.doctor) {
			t.Errorf("doctor on %s ends with %d:\n%s", c.node.name, code, text)
		}
		text, code := c.node.run(t, "cluster", "status", "--server", "http://"+c.node.admin)
		if code != 0 {
			t.Errorf("cluster status on %s ends with %d: %s", c.node.name, code, text)
		}
		for _, other := range f.all {
			if listed := strings.Contains(text, "\n"+other.name); listed != (other != f.decide || other == c.node) {
				t.Errorf("%s lists %s: %v\n%s", c.node.name, other.name, listed, text)
			}
		}
		if !strings.Contains(text, " "+c.roles+" ") || !strings.Contains(text, c.node.name+"*") {
			t.Errorf("cluster status on %s has no %s:\n%s", c.node.name, c.roles, text)
		}
	}
}

// contains checks parts of a text.
func contains(t *testing.T, what, text string, has, lacks []string) {
	t.Helper()
	for _, part := range has {
		if !strings.Contains(text, part) {
			t.Errorf("%s has no %s: %s", what, part, tail([]byte(text), 1500))
		}
	}
	for _, part := range lacks {
		if strings.Contains(text, part) {
			t.Errorf("%s has %s", what, part)
		}
	}
}

// handOver stops a server that processes, and then one that accepts events: others take
// their work over.
func (f *fleet) handOver(t *testing.T, more func(int64)) {
	t.Helper()
	began := time.Now()
	if err := f.first.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, "the other server has all partitions", f.owned(f.manage, map[string]int{"second": 6}))
	took := time.Since(began)
	t.Logf("handed over %s after SIGTERM", took.Round(time.Millisecond))
	if took > slowest {
		t.Errorf("handed over after %s", took)
	}
	<-f.first.ended
	more(100)
	f.edge.terminate(t)
	more(100)
	f.edge.start(t)
	more(100)
}

// checkDelivered waits until all events are in the files of the sinks.
func (f *fleet) checkDelivered(t *testing.T, want int) {
	t.Helper()
	eventually(t, time.Minute, "all events are delivered", func() error {
		times, err := f.delivered()
		if err == nil && len(times) < want {
			err = fmt.Errorf("%d of %d", len(times), want)
		}
		return err
	})
	times, err := f.delivered()
	if err != nil || len(times) != want {
		t.Errorf("%d events are delivered of %d: %v", len(times), want, err)
	}
	again := 0
	for _, n := range times {
		again += n - 1
	}
	t.Logf("%d events are delivered, %d of them again", want, again)
}

// checkLogs checks that the servers have logged no error.
func (f *fleet) checkLogs(t *testing.T) {
	t.Helper()
	for _, n := range f.all {
		n.checkLog(t, "error")
	}
}

// checkLog checks that the log of the node has no line of the levels, but for requests
// that belong to other servers.
func (n *node) checkLog(t *testing.T, levels ...string) {
	t.Helper()
	text, err := os.ReadFile(n.log())
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for line := range strings.Lines(string(text)) {
		for _, level := range levels {
			if strings.Contains(line, `"level":"`+level+`"`) && !strings.Contains(line, `"code":"role_missing"`) {
				t.Errorf("%s logs: %s", n.name, line)
			}
		}
		if strings.Contains(line, `"level":"info"`) {
			lines++
		}
	}
	if lines == 0 {
		t.Errorf("the log of %s has no lines: %s", n.name, text)
	}
}
