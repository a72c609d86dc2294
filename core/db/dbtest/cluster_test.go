package dbtest_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
)

// holding makes this test binary a process that holds a cluster until killed.
const holding = "GUIDON_DBTEST_HOLDS"

func TestMain(m *testing.M) {
	if os.Getenv(holding) == "" {
		goleak.VerifyTestMain(m)
	}
	os.Exit(m.Run())
}

// TestHoldsACluster is the body of the processes that the next tests start.
func TestHoldsACluster(t *testing.T) {
	u := dbtest.PostgresURL(t)
	if os.Getenv(holding) == "" {
		return
	}
	d, err := db.Open(t.Context(), db.Config{URL: u}, "")
	if err != nil {
		t.Fatal(err)
	}
	current, known, err := d.Version(t.Context())
	if err = errors.Join(err, d.Close()); err != nil || current != known {
		t.Fatalf("at step %d of %d, %v", current, known, err)
	}
	fmt.Println("holding", u)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// holder is a process with a migrated database on Postgres.
type holder struct {
	cmd *exec.Cmd
	end io.Closer // ends the process when it is closed
	out io.Reader
}

func startHolder(t *testing.T, environ ...string) *holder {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run", "^TestHoldsACluster$")
	cmd.Env = append(os.Environ(), append([]string{holding + "=1", "GUIDON_TEST_POSTGRES="}, environ...)...)
	end, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // fails if it has ended
	return &holder{cmd, end, out}
}

// database waits for the database of the process and returns its URL.
func (h *holder) database(t *testing.T) *url.URL {
	t.Helper()
	var all strings.Builder
	for lines := bufio.NewScanner(h.out); lines.Scan(); {
		_, text, found := strings.Cut(lines.Text(), "holding ")
		if !found {
			all.WriteString(lines.Text() + "\n")
			continue
		}
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	t.Fatalf("the process holds no cluster:\n%s", &all)
	return nil
}

// finish ends the process in the regular way.
func (h *holder) finish(t *testing.T) {
	t.Helper()
	_ = h.end.Close()
	_, _ = io.Copy(io.Discard, h.out)
	if err := h.cmd.Wait(); err != nil {
		t.Errorf("the process: %v", err)
	}
}

func TestClusterEndsWithAKilledProcess(t *testing.T) {
	t.Parallel()
	_ = dbtest.PostgresURL(t) // skips the test without Postgres
	h := startHolder(t)
	dir := h.database(t).Query().Get("host")
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("the cluster's folder: %v", err)
	}
	_ = h.cmd.Process.Kill()
	_ = h.cmd.Wait()
	waitGone(t, dir)
}

func waitGone(t *testing.T, dir string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(dir); os.IsNotExist(err) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s outlives its process", dir)
		}
	}
}

// Processes that start at once on a machine that has no migrated cluster yet, and one that
// starts later and copies what they kept.
func TestMigratedClusterIsKept(t *testing.T) {
	t.Parallel()
	_ = dbtest.PostgresURL(t) // skips the test without Postgres
	temporary := t.TempDir()
	for _, dir := range []string{temporary, filepath.Dir(temporary)} { // for the account of Postgres
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}

	var together []*holder
	for range 2 {
		together = append(together, startHolder(t, "TMPDIR="+temporary))
	}
	for _, h := range together {
		_ = h.database(t)
	}
	for _, h := range together {
		h.finish(t)
	}
	kept, err := filepath.Glob(filepath.Join(temporary, "guidon-migrated-postgres-*"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept %v, %v; want one cluster", kept, err)
	}

	if err := os.WriteFile(filepath.Join(kept[0], "mark"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	later := startHolder(t, "TMPDIR="+temporary)
	dir := later.database(t).Query().Get("host")
	if _, err := os.Stat(filepath.Join(dir, "data", "mark")); err != nil {
		t.Errorf("the later process made a cluster of its own: %v", err)
	}
	later.finish(t)
	waitGone(t, dir)
	if left, err := filepath.Glob(filepath.Join(temporary, "guidon-dbtest-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestNoneSkips(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(os.Args[0], "-test.run", "^TestHoldsACluster$", "-test.v")
	cmd.Env = append(os.Environ(), "GUIDON_TEST_POSTGRES=none")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- SKIP") {
		t.Errorf("%v:\n%s", err, out)
	}
}
