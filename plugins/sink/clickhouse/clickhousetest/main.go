package clickhousetest

import (
	"fmt"
	"os"
	"testing"
)

// RunMain runs the tests of a package with one server for all of them, and returns the code to
// exit with. Start returns that server.
func RunMain(m *testing.M) (code int) {
	if os.Getenv("GUIDON_TEST_CLICKHOUSE") != "" {
		return m.Run()
	}
	t := &mainTest{}
	defer func() {
		for _, f := range t.cleanups {
			defer f()
		}
		if v := recover(); v != nil {
			_, _ = fmt.Fprintln(os.Stderr, v)
			code = 1
		}
	}()
	if err := os.Setenv("GUIDON_TEST_CLICKHOUSE", StartServer(t).URL); err != nil {
		t.Fatal(err)
	}
	return m.Run()
}

// mainTest is what StartServer needs of a test.
type mainTest struct {
	testing.TB
	cleanups []func()
	failed   bool
}

func (t *mainTest) Helper()          {}
func (t *mainTest) Failed() bool     { return t.failed }
func (t *mainTest) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }

func (t *mainTest) Logf(format string, args ...any) {
	_, _ = fmt.Fprintf(os.Stderr, format+"\n", args...)
}

func (t *mainTest) Fatal(args ...any) {
	t.failed = true
	panic(fmt.Sprint(args...))
}

func (t *mainTest) TempDir() string {
	dir, err := os.MkdirTemp("", "guidon-clickhouse-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
