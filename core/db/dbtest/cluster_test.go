package dbtest_test

import (
	"bufio"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

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

// TestHoldsACluster is the body of the process that the next test kills.
func TestHoldsACluster(t *testing.T) {
	u := dbtest.PostgresURL(t)
	if os.Getenv(holding) != "" {
		fmt.Println("holding", u)
		_, _ = io.Copy(io.Discard, os.Stdin)
	}
}

func TestClusterEndsWithAKilledProcess(t *testing.T) {
	t.Parallel()
	_ = dbtest.PostgresURL(t) // skips the test without Postgres
	cmd := exec.Command(os.Args[0], "-test.run", "^TestHoldsACluster$")
	cmd.Env = append(os.Environ(), holding+"=1", "GUIDON_TEST_POSTGRES=")
	if _, err := cmd.StdinPipe(); err != nil { // keeps it waiting
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	dir := socketDir(t, out)
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("the cluster's folder: %v", err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(dir); os.IsNotExist(err) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s outlives its process", dir)
		}
	}
}

// socketDir reads the URL that the holding process prints.
func socketDir(t *testing.T, out io.Reader) string {
	t.Helper()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		_, text, found := strings.Cut(lines.Text(), "holding ")
		if !found {
			continue
		}
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return u.Query().Get("host")
	}
	t.Fatal("the process holds no cluster")
	return ""
}
