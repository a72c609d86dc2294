package db

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/fx/fxtest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// crashed returns the directory of a database whose process was killed: 40 rows
// are in its write-ahead log.
func crashed(t *testing.T) (dir string) {
	t.Helper()
	live, dir := t.TempDir(), t.TempDir()
	d, err := Open(t.Context(), Config{}, live)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	exec := func(q string, args ...any) {
		if _, err := d.Write(t.Context()).ExecContext(t.Context(), q, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec("CREATE TABLE t (n INTEGER PRIMARY KEY, s TEXT)")
	for n := range 200 { // more than one page in the file itself
		exec("INSERT INTO t VALUES (?, ?)", -n-1, strings.Repeat("old ", 500))
	}
	if done, err := d.TruncateLog(t.Context()); err != nil || !done {
		t.Fatal(done, err)
	}
	for n := range 40 {
		exec("INSERT INTO t VALUES (?, ?)", n, strings.Repeat(fmt.Sprint(n, " "), 300))
	}
	for _, name := range []string{fileName, fileName + "-wal"} {
		change(t, filepath.Join(live, name), filepath.Join(dir, name), func([]byte) {})
	}
	return dir
}

// change writes a changed copy of a file.
func change(t *testing.T, from, to string, f func(content []byte)) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	f(content)
	if err := os.WriteFile(to, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// provided opens a database as the server does.
func provided(t *testing.T, dir string) (*DB, *observer.ObservedLogs) {
	t.Helper()
	core, logs := observer.New(zap.InfoLevel)
	lc := fxtest.NewLifecycle(t)
	d, err := provide(lc, Config{}, DataDir(dir), zap.New(core), nil)
	if err != nil {
		t.Fatal(err)
	}
	lc.RequireStart()
	t.Cleanup(lc.RequireStop)
	return d, logs
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timeout waiting for %s", what)
		}
	}
}

func newRows(t *testing.T, d *DB) (n int) {
	t.Helper()
	if err := d.Read(t.Context()).QueryRowContext(t.Context(), "SELECT count(*) FROM t WHERE n >= 0").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// defaultPage is the size of a page of the files that Guidon creates.
const defaultPage = 4096

// frameAt is the offset of a frame of the log.
func frameAt(n int) int { return 32 + n*(24+defaultPage) }

// A command does not open a database with a damaged log, and the check reports
// it without a change; the server corrects it.
func TestDamagedLogIsCorrectedByTheServer(t *testing.T) {
	t.Parallel()
	dir := crashed(t)
	path := filepath.Join(dir, fileName)
	change(t, path+"-wal", path+"-wal", func(log []byte) { log[frameAt(10)+24+200] ^= 4 })
	if _, err := Open(t.Context(), Config{}, dir); err == nil || !strings.Contains(err.Error(), "run guidon serve") {
		t.Fatalf("opened a damaged log: %v", err)
	}
	problems, err := CheckFile(t.Context(), Config{}, dir)
	if err != nil || len(problems) != 1 || !strings.Contains(problems[0], "write-ahead log") {
		t.Fatalf("the check found %q (%v)", problems, err)
	}
	d, logs := provided(t, dir)
	if n := newRows(t, d); n != 40 {
		t.Errorf("%d of 40 rows", n)
	}
	c := d.Condition()
	if c.State != "ok" || c.Log == nil || c.Log.Corrected != 1 || c.Log.LostCommits != 0 {
		t.Errorf("condition %+v", c)
	}
	if _, err := os.Stat(c.Log.Kept); err != nil {
		t.Errorf("the damaged log: %v", err)
	}
	if logs.FilterMessage("database write-ahead log damaged").Len() != 1 {
		t.Error("no log line")
	}
	eventually(t, "the check", func() bool { return d.Condition().CheckedAt != nil })
}

// A frame that cannot be corrected ends the log, and the lost commits are counted,
// except those within the damage.
func TestLostCommitsAreReported(t *testing.T) {
	t.Parallel()
	dir := crashed(t)
	path := filepath.Join(dir, fileName)
	change(t, path+"-wal", path+"-wal", func(log []byte) { clear(log[frameAt(20):frameAt(21)]) })
	d, _ := provided(t, dir)
	n, c := newRows(t, d), d.Condition()
	if n == 0 || n >= 40 || c.Log == nil || c.Log.LostCommits < 38-n || c.Log.LostCommits > 40-n {
		t.Errorf("%d of 40 rows, condition %+v", n, c)
	}
	if !c.Degraded() || !strings.Contains(c.Message, "guidon check") {
		t.Errorf("condition %+v", c)
	}
}

// The check reads an intact log without a report.
func TestIntactLogIsNotReported(t *testing.T) {
	t.Parallel()
	dir := crashed(t)
	if problems, err := CheckFile(t.Context(), Config{}, dir); err != nil || problems != nil {
		t.Errorf("an intact log: %q (%v)", problems, err)
	}
}

// A malformed page is found by the check after the start, and by a statement that
// meets it, and is announced once.
func TestMalformedPageIsAnnounced(t *testing.T) {
	t.Parallel()
	dir := crashed(t)
	path := filepath.Join(dir, fileName)
	d, err := Open(t.Context(), Config{}, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	var root int
	if err := d.Read(t.Context()).QueryRowContext(t.Context(), "SELECT rootpage FROM sqlite_schema WHERE name = 't'").Scan(&root); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	change(t, path, path, func(file []byte) { clear(file[(root-1)*defaultPage : root*defaultPage]) })
	d, logs := provided(t, dir)
	eventually(t, "the check", func() bool { return d.Condition().Degraded() })
	for range 3 {
		var n int
		err := d.Read(context.Background()).QueryRowContext(context.Background(), "SELECT count(*) FROM t").Scan(&n)
		if err == nil || !isMalformed(err) || !strings.Contains(err.Error(), "guidon check") {
			t.Fatalf("counted %d rows of a malformed table: %v", n, err)
		}
	}
	if n := logs.FilterMessage("database damaged").Len(); n < 1 || n > 2 { // the check and the statement
		t.Errorf("%d log lines: %v", n, logs.All())
	}
	if c := d.Condition(); c.State != "damaged" || !strings.Contains(c.Message, whatToDo) {
		t.Errorf("condition %+v", c)
	}
}

// A start that reads a value of another type says what to do: the file may be damaged.
func TestExplainStart(t *testing.T) {
	t.Parallel()
	scan := errors.New(`read applied migrations: sql: Scan error on column index 1, name "name": converting NULL to string is unsupported`)
	if err := ExplainStart(scan); !strings.Contains(err.Error(), "guidon check") {
		t.Error(err)
	}
	if other := errors.New("address in use"); ExplainStart(other).Error() != other.Error() || ExplainStart(nil) != nil {
		t.Error("another error has changed")
	}
}
