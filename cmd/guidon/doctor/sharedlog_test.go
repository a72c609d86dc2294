package doctor

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/app/requestlog"
	"github.com/guidonhq/guidon/core/eventlog/logstate"
)

func TestSharedLog(t *testing.T) {
	t.Parallel()
	good := logstate.Inspection{ID: "kafka/a/b", Ends: []uint64{7, 9}}
	for name, c := range map[string]struct {
		report   requestlog.Report
		accepted bool     // a log that may lose records
		want     []string // state and a part of each result
	}{
		"no log": {requestlog.Report{Name: "topic a"}, false, []string{"warn topic a: there is no log yet", "ok clock"}},
		"works": {
			requestlog.Report{Inspection: good, Processing: 2, Behind: map[string]uint64{"worker": 0}}, false,
			[]string{"ok 2 partitions", "ok clock", "ok 2 servers process the 2 partitions", "ok 1 readers have done all records"},
		},
		"weak": {
			requestlog.Report{Inspection: logstate.Inspection{ID: "x", Weaknesses: []string{"it has one replica"}}}, false,
			[]string{"ok 0 partitions", "fail it has one replica", "ok clock", "warn no server processes the log"},
		},
		"weak, accepted": {
			requestlog.Report{Inspection: logstate.Inspection{ID: "x", Weaknesses: []string{"it has one replica"}}}, true,
			[]string{"ok 0 partitions", "warn it has one replica", "ok clock", "warn no server processes the log"},
		},
		"another log": {requestlog.Report{Inspection: good, Other: "kafka/c/d"}, false, []string{"fail belongs to the log kafka/c/d", "ok clock"}},
		"behind": {
			requestlog.Report{Inspection: good, Processing: 1, Unowned: []int{0, 1}, Behind: map[string]uint64{"worker": 3, "sink/lines": 200_000}, Clock: -time.Minute}, false,
			[]string{"ok 2 partitions", "warn differs from that of the database by 1m0s", "warn partitions without a server: 0 1", "warn sink/lines 200000, worker 3"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var cfg app.Config
			cfg.Journal.AcceptWeakTopic = c.accepted
			got := append(checkPromises(c.report, cfg), checkReaders(c.report)...)
			if len(got) != len(c.want) {
				t.Fatalf("got %+v", got)
			}
			for i, want := range c.want {
				state, part, _ := strings.Cut(want, " ")
				if got[i].State != state || !strings.Contains(got[i].Found, part) || state != OK && got[i].Advice == "" {
					t.Errorf("got %s, want %q", fmt.Sprintf("%+v", got[i]), want)
				}
			}
		})
	}
}

// TestFewPartitions checks a log that has fewer partitions than the config: Kafka refuses
// the start, a log in the database goes on with what it has.
func TestFewPartitions(t *testing.T) {
	t.Parallel()
	report := requestlog.Report{Inspection: logstate.Inspection{ID: "a", Ends: []uint64{0, 0}}}
	for url, want := range map[string]string{"kafka://host/topic": Fail, "postgres": Warn} {
		var cfg app.Config
		cfg.Journal.URL, cfg.Journal.Partitions = url, 12
		if got := checkPromises(report, cfg)[1]; got.State != want || !strings.Contains(got.Found, "journal.partitions is 12 and the log has 2") {
			t.Errorf("%s: got %+v", url, got)
		}
		cfg.Journal.Partitions = 2
		if got := checkPromises(report, cfg)[1]; got.State != OK {
			t.Errorf("%s: got %+v", url, got)
		}
	}
}
