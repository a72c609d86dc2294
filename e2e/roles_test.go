//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/guidonhq/guidon/core/db/dbtest"
)

// run runs a command of the binary with the environment of the node, and returns its
// output and its exit code.
func (n *node) run(t *testing.T, arguments ...string) (text string, code int) {
	t.Helper()
	return n.runBinary(t, n.command[len(n.command)-2], arguments...)
}

// runBinary is run with another binary.
func (n *node) runBinary(t *testing.T, binary string, arguments ...string) (text string, code int) {
	t.Helper()
	command := append(append(n.command[:len(n.command)-2:len(n.command)-2], binary), arguments...)
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "GUIDON_PERSONAL_KEY="+n.personal)
	out, err := cmd.CombinedOutput()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// page returns a page of the admin address.
func (n *node) page(t *testing.T, path string) (text string, status int) {
	t.Helper()
	res, err := http.Get("http://" + n.admin + path)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw), res.StatusCode
}

// readerOf makes a user of Postgres who may only read, and returns the URL with it.
func readerOf(t *testing.T, database string) string {
	t.Helper()
	c, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	name := "reader_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	for _, statement := range []string{"CREATE ROLE " + name + " LOGIN", "GRANT SELECT ON ALL TABLES IN SCHEMA public TO " + name} {
		if _, err := c.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { // before the database is dropped
		for _, statement := range []string{"DROP OWNED BY " + name, "DROP ROLE " + name} {
			if _, err := c.Exec(context.WithoutCancel(t.Context()), statement); err != nil {
				t.Error(err)
			}
		}
		_ = c.Close(context.WithoutCancel(t.Context()))
	})
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("user", name)
	u.RawQuery = q.Encode()
	return u.String()
}

// fleet is servers with different roles on one database and one log. Two process and
// deliver to a file of their own.
type fleet struct {
	database                                     string
	manage, edge, capture, first, second, decide *node
	all                                          []*node
	lines                                        []string // files of the sinks
}

func startFleet(t *testing.T, log string) *fleet {
	t.Helper()
	database := dbtest.PostgresURL(t)
	f := &fleet{database: database}
	begin := func(name, roles, database string) *node {
		file := filepath.Join(t.TempDir(), "lines")
		config := writeFile(t, filepath.Dir(file), "guidon.yaml", "{}")
		if strings.Contains(roles, "deliver") {
			config = writeFile(t, filepath.Dir(file), "guidon.yaml", "plugins:\n  instances:\n%s", sinkYAML("lines", "file", "path: "+file))
			f.lines = append(f.lines, file)
		}
		n := newNode(t, name, database, log, "GUIDON_ROLES="+roles, "GUIDON_CONFIG="+config)
		if f.manage != nil {
			n.project, n.personal = f.manage.project, f.manage.personal
		}
		launch(t, n.software)
		f.all = append(f.all, n)
		return n
	}
	f.manage = begin("manage", "manage", database)
	f.manage.readPrintedKeys(t)
	f.edge, f.capture = begin("edge", "capture,decide", database), begin("capture", "capture", database)
	f.first, f.second = begin("first", "process,deliver", database), begin("second", "process,deliver", database)
	f.decide = begin("decide", "decide", readerOf(t, database))
	return f
}

// delivered returns how often each event is in the files of the sinks.
func (f *fleet) delivered() (map[string]int, error) {
	times := map[string]int{}
	for _, file := range f.lines {
		text, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			if e, complete := parseLine(line); complete && e.Event == "e" {
				times[e.UUID]++
			}
		}
	}
	return times, nil
}

// TestRoles runs servers that have a part of the roles each: events are accepted by two,
// processed and delivered by two others, and flags that a fifth changes are decided by
// the edge and by one that may only read the database. Servers that stop hand over,
// without an error for clients that try another one.
func TestRoles(t *testing.T) {
	t.Parallel()
	t.Run("Postgres", func(t *testing.T) {
		t.Parallel()
		testRoles(t, "postgres")
	})
	t.Run("Kafka", func(t *testing.T) {
		t.Parallel()
		_, address := startKafka(t)
		testRoles(t, "kafka://"+address+"/roles")
	})
}

func testRoles(t *testing.T, log string) {
	f := startFleet(t, log)
	f.checkRefusedSets(t)
	eventually(t, time.Minute, "the partitions are divided", f.owned(f.manage, map[string]int{"first": 3, "second": 3}))
	f.checkChange(t)
	stop, accepted, failed, counts := make(chan struct{}), &atomic.Int64{}, &atomic.Int64{}, make([]int, 20)
	var writers sync.WaitGroup
	for i := range counts {
		writers.Go(func() {
			counts[i] = writer(stop, 0, f.manage.project, fmt.Sprint("person", i), []*node{f.edge, f.capture}, accepted, failed)
		})
	}
	more := func(n int64) {
		t.Helper()
		from := accepted.Load()
		eventually(t, time.Minute, "events are accepted", func() error {
			if got := accepted.Load() - from; got < n {
				return fmt.Errorf("%d of %d", got, n)
			}
			return nil
		})
	}
	more(300)
	f.checkOperation(t)
	f.handOver(t, more)
	close(stop)
	writers.Wait()
	if n := failed.Load(); n > 0 {
		t.Errorf("%d requests were answered with 5xx", n)
	}
	f.checkDelivered(t, int(accepted.Load()))
	checkStored(t, f.database, counts)
	f.checkLogs(t)
}
