//go:build e2e

package main_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/plugins/sink/clickhouse/clickhousetest"
)

// The test kills the process of the clickhouse sink and the server under load:
// every accepted event is in the table and counts once.
func TestClickHouseSinkSurvivesKills(t *testing.T) {
	url := clickhousetest.Start(t)
	clickhousetest.Query(t, url, "DROP TABLE IF EXISTS killed")
	s := newServer(t)
	yaml := fmt.Sprintf("plugins:\n  instances:\n    - name: analytics\n      kind: sink\n      use: clickhouse\n      config:\n        url: %q\n        password: hush\n        table: killed\n", url)
	if err := os.WriteFile(s.config(), []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	acked := map[string]bool{}
	for round := range 3 {
		s.start(t)
		for n := range 50 {
			ids, path, body := captureRequest(s.project, round, n)
			if code, err := s.post(path, body); err != nil || code != http.StatusOK {
				t.Fatalf("%d %v", code, err)
			}
			for _, id := range ids {
				acked[id] = true
			}
			if n == 25 {
				killPlugin(t, s)
			}
		}
		if round < 2 {
			s.kill()
		}
	}
	until(t, func() string {
		if clickhousetest.Query(t, url, "EXISTS TABLE killed") != "1" {
			return "the table does not exist yet"
		}
		found := map[string]int{}
		for _, id := range strings.Fields(clickhousetest.Query(t, url, "SELECT uuid FROM killed FINAL")) {
			found[id]++
		}
		for id, times := range found {
			if times != 1 {
				t.Errorf("%s counts %d times", id, times)
			}
		}
		return missingEvents(acked, found, "ClickHouse")
	})
	if err := s.stop(t); err != nil {
		t.Errorf("stop: %v", err)
	}
}
