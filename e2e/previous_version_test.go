//go:build e2e

package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/db/dbtest"
)

// olderSchema is the last commit before migration 104, which added the log in Postgres. A
// server of it shares a log in Kafka with newer ones.
const olderSchema = "6a35f1a666087babd6d3abee5feed6f7ed09008f"

// previousVersion returns the commit of the last release. Without one, or while the schema is
// still that of the release, it is olderSchema: an upgrade has a migration.
func previousVersion(t *testing.T) string {
	t.Helper()
	tag, err := exec.Command("git", "describe", "--tags", "--abbrev=0", "--match", "v*").Output()
	version := strings.TrimSpace(string(tag))
	if err != nil || exec.Command("git", "diff", "--quiet", version, "--", "../migrations").Run() == nil {
		version = olderSchema
	}

	commit, err := exec.Command("git", "rev-parse", "--quiet", "--verify", version+"^{commit}").Output()
	if err != nil {
		t.Fatalf("%s is not in this clone: fetch its history (git fetch --unshallow --tags)", version)
	}
	return strings.TrimSpace(string(commit))
}

// buildPrevious builds the binary of the previous version from the history of the
// repository, once for all runs.
func buildPrevious(t *testing.T) string {
	t.Helper()
	commit := previousVersion(t)
	binary := filepath.Join(workDir(t), "guidon-"+commit)
	if _, err := os.Stat(binary); err == nil {
		return binary
	}
	source := filepath.Join(t.TempDir(), "source")
	output(t, ".", "git", "worktree", "add", "--detach", source, commit)
	t.Cleanup(func() {
		if text, err := exec.Command("git", "worktree", "remove", "--force", source).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, text)
		}
	})
	output(t, source, "go", "build", "-o", binary+".new", "./cmd/guidon")
	if err := os.Rename(binary+".new", binary); err != nil {
		t.Fatal(err)
	}
	return binary
}

// TestPreviousVersion upgrades two nodes on Kafka one after the other from a version with
// an older schema, while clients send to both. The newer node migrates under the older
// one, which goes on; each accepted event is stored once, in the order of its person.
func TestPreviousVersion(t *testing.T) {
	t.Parallel()
	previous := buildPrevious(t)
	_, address := startKafka(t)
	database := dbtest.EmptyPostgresURL(t)
	var nodes []*node
	for _, name := range []string{"one", "two"} {
		n := newNode(t, name, database, "kafka://"+address+"/versions")
		n.command[len(n.command)-2] = previous
		launch(t, n.software)
		nodes = append(nodes, n)
	}
	nodes[0].readPrintedKeys(t)
	schema := func() string {
		text, code := nodes[0].runBinary(t, binary(t), "migrate", "--status")
		return fmt.Sprint(code, " ", text)
	}
	if text := schema(); !strings.HasPrefix(text, "1 ") {
		t.Fatalf("the schema of the older version is that of the newer one: %s", text)
	}
	stop, accepted, failed, counts := make(chan struct{}), &atomic.Int64{}, &atomic.Int64{}, make([]int, 20)
	var writers sync.WaitGroup
	for i := range counts {
		writers.Go(func() {
			counts[i] = writer(stop, 0, nodes[0].project, fmt.Sprint("person", i), nodes, accepted, failed)
		})
	}
	more := func() {
		t.Helper()
		from := accepted.Load()
		eventually(t, time.Minute, "events are accepted", func() error {
			if got := accepted.Load() - from; got < 300 {
				return fmt.Errorf("%d", got)
			}
			return nil
		})
	}
	more()
	for i, n := range nodes {
		n.terminate(t)
		more()
		n.command[len(n.command)-2] = binary(t)
		n.start(t)
		more()
		if i == 0 {
			eventually(t, time.Minute, "both versions process", func() error {
				got, err := n.partitions(nodes[0].personal)
				if err == nil && (got["one"] != 3 || got["two"] != 3) {
					err = fmt.Errorf("%v", got)
				}
				return err
			})
			more()
		}
	}
	if text := schema(); !strings.HasPrefix(text, "0 ") {
		t.Errorf("the schema is not that of the newer version: %s", text)
	}
	close(stop)
	writers.Wait()
	checkStored(t, database, counts)
	if n := failed.Load(); n > 0 {
		t.Errorf("%d requests were answered with 5xx", n)
	}
	for _, n := range nodes {
		n.checkLog(t, "error")
	}
}
