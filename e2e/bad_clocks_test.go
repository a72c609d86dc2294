//go:build e2e

package e2e_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/db/dbtest"
)

// TestBadClocks runs two nodes whose clocks are a minute ahead and behind: each warns with
// the seconds, in its log and its readiness, and goes on; no event is lost or out of order.
// Its server takes minutes to build, so it runs with the long rounds of TestClusterChaos
// (make cluster-chaos); core/cluster tests the warnings each time.
func TestBadClocks(t *testing.T) {
	if chaosSetting(t, "CHAOS_ROUNDS") == 0 {
		t.Skip("CHAOS_ROUNDS is not set")
	}
	t.Parallel()
	program, database := shiftedBinary(t), dbtest.PostgresURL(t)
	var nodes []*node
	for i, seconds := range []int{60, -60} {
		n := newNode(t, fmt.Sprint("node", i), database, "postgres")
		n.command[len(n.command)-2] = wrongClock(t, program, n.dir, seconds)
		launch(t, n.software)
		if i == 0 {
			n.readPrintedKeys(t)
		}
		nodes = append(nodes, n)
	}
	for i, n := range nodes {
		n.project, n.personal = nodes[0].project, nodes[0].personal
		eventually(t, 2*time.Minute, "the node warns of its clock", func() error {
			output, err := os.ReadFile(n.log())
			side := []string{"ahead of", "behind"}[i] // the clock of the database
			if !bytes.Contains(output, []byte("clock differs from that of the database")) || !bytes.Contains(output, []byte(side+" the clock of the database")) {
				return errors.Join(err, fmt.Errorf("output: %s", tail(output, 2000)))
			}
			return nil
		})
		if err := n.ready(); err != nil {
			t.Errorf("%s is not ready: %v", n.name, err)
		}
	}
	stop, accepted, failed := make(chan struct{}), &atomic.Int64{}, &atomic.Int64{}
	var writers sync.WaitGroup
	counts := make([]int, 3)
	for i := range counts {
		writers.Go(func() {
			counts[i] = writer(stop, 10*time.Millisecond, nodes[0].project, fmt.Sprint("person", i), nodes, accepted, failed)
		})
	}
	eventually(t, 2*time.Minute, "events are accepted", func() error { return atLeast(accepted, 200) })
	close(stop)
	writers.Wait()
	checkStored(t, database, counts)
	t.Logf("%d requests were refused and repeated", failed.Load())
}

// wrongClock returns a link to a program of shiftedBinary with another clock.
func wrongClock(t *testing.T, program, dir string, seconds int) string {
	t.Helper()
	path := filepath.Join(dir, "guidon")
	if err := os.Link(program, path); err != nil {
		t.Fatal(err)
	}
	writeFile(t, dir, "guidon.clock", "%s", strconv.Itoa(seconds))
	return path
}
