package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestRunTests runs a module with tests of every outcome and reads the report.
func TestRunTests(t *testing.T) {
	dir := t.TempDir()
	ledger := filepath.Join(dir, "flaky")
	t.Setenv("FAILS_ONCE", filepath.Join(dir, "once"))
	t.Setenv("GUIDON_TEST_FLAKY", ledger)
	t.Chdir("testdata/module")

	var passed bool
	out := printed(t, func() {
		var err error
		if passed, err = runTests(t.Context(), []string{"-vet=off", "-count=1", "./..."}, ""); err != nil {
			t.Fatal(err)
		}
	})

	if passed {
		t.Error("the run passed")
	}
	for _, want := range []string{
		"ok   example.com/module/good",
		"FAIL example.com/module/failing",
		"FAILED example.com/module/failing TestFails\n",
		"the reason inside",
		"FAILED example.com/module/panicking TestPanics\n",
		"the reason of the panic",
		"FAILED example.com/module/broken does not compile\n",
		"thereIsNoSuchFunction",
		"FAILED example.com/module/flaky TestKillOnce\n",
		"FLAKY example.com/module/flaky TestFailsOnce:",
		"FAILED example.com/module/leaving printed outside of its tests\n",
		"three servers are left",
		"FAILED example.com/module/skipping TestSkipsTheSecondTime\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the report does not say %q", want)
		}
	}
	for _, unwanted := range []string{"not to be seen", "FAILED example.com/module/flaky TestFailsOnce"} {
		if strings.Contains(out, unwanted) {
			t.Errorf("the report says %q", unwanted)
		}
	}
	if want := "\n3 passed, 7 failed, 1 skipped\n"; !strings.HasSuffix(out, want) {
		t.Errorf("the report does not end with %q", want)
	}
	if t.Failed() {
		t.Log(out)
	}
	if text, _ := os.ReadFile(ledger); string(text) != "example.com/module/flaky TestFailsOnce\n" {
		t.Errorf("flaky tests are %q", text)
	}
}

// printed returns what run prints on standard output.
func printed(t *testing.T, run func()) string {
	t.Helper()
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	read := make(chan struct{})
	go func() { _, _ = io.Copy(&text, in); close(read) }()

	stdout := os.Stdout
	os.Stdout = out
	defer func() { os.Stdout = stdout }()
	run()
	_ = out.Close()
	<-read
	return text.String()
}

func TestMayRetry(t *testing.T) {
	for _, c := range []struct {
		failure failure
		want    bool
	}{
		{failure{Package: "p", Test: "TestList"}, true},
		{failure{Package: "p", Test: "TestKillUnderLoad"}, false},
		{failure{Package: "p", Test: "TestList", Output: "repeat with -seed 7"}, false},
		{failure{Package: "p", Test: "TestList", Output: "fatal error: concurrent map writes"}, false},
		{failure{Package: "github.com/guidonhq/guidon/core/journal/index", Test: "TestList"}, false},
		{failure{Package: "p", Test: "TestList", Output: "WARNING: DATA RACE"}, false},
		{failure{Package: "p", Test: "TestList", Output: "panic: index out of range"}, false},
		{failure{Package: "github.com/guidonhq/guidon/core/simulation", Test: "TestList"}, false},
		{failure{Package: "p", Reason: "does not compile"}, false},
	} {
		if got := mayRetry(c.failure); got != c.want {
			t.Errorf("%+v: %t", c.failure, got)
		}
	}
}

// A package that go test has begun and not ended has failed.
func TestEndedGoTest(t *testing.T) {
	r := newReport(io.Discard)
	events := `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"start","Package":"q"}
{"Action":"run","Package":"q","Test":"TestB"}
{"Action":"pass","Package":"q","Test":"TestB"}
{"Action":"pass","Package":"q"}
`
	if err := r.read(strings.NewReader(events)); err != nil {
		t.Fatal(err)
	}
	r.endUnfinished()
	for _, f := range r.failures {
		if f.Package != "p" || mayRetry(f) {
			t.Errorf("%+v", f)
		}
	}
	if len(r.failures) == 0 {
		t.Error("nothing failed")
	}
}

// A single test is run with the flags of the run, without its packages and its selection.
func TestWithout(t *testing.T) {
	got := without([]string{"-vet=off", "-run", "X", "-timeout", "10m", "-tags=e2e", "-count=1", "./core/...", "./app"})
	if want := []string{"-vet=off", "-timeout", "10m", "-tags=e2e"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
