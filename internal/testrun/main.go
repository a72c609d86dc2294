// Testrun runs go test and reports what a reader of the run wants to know: each
// package as it ends, the output of the tests that failed and of no others, what
// the run cost, and at the end the failures again.
//
//	go run ./internal/testrun [-log FILE] -- [arguments of go test]
//
// With -v among the arguments the output of every test is printed as it comes.
//
// A test that failed is run three times alone. If it passes each time, it is
// flaky: the run succeeds, and its last lines name the test, which then belongs
// in docs/flaky.md until its cause is fixed. Some failures are never excused,
// because there a retry would hide a defect of the product (see mayRetry): tests
// that kill, damage or simulate, anything that the race detector reports, panics
// and timeouts.
//
// The variable GUIDON_TEST_FLAKY names a file to which the flaky tests are
// appended, one a line.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	// attempts is how often a failed test must pass alone to count as flaky.
	attempts = 3
	// retriesLimit is the number of failures of a run up to which tests are retried.
	retriesLimit = 10
)

func main() {
	log := flag.String("log", os.Getenv("GUIDON_TEST_LOG"), "write the events of go test -json to this file (GUIDON_TEST_LOG)")
	flag.Parse()

	// An interrupt reaches go test, too. This process stays to print what it knows.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	ok, err := runTests(ctx, flag.Args(), *log)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

// runTests runs go test with args, retries what may be retried and prints the
// report. It reports whether the run counts as passed.
func runTests(ctx context.Context, args []string, log string) (bool, error) {
	begin := time.Now()
	r := newReport(os.Stdout)
	r.verbose = slices.Contains(args, "-v")
	if log != "" {
		file, err := os.Create(log)
		if err != nil {
			return false, err
		}
		defer func() { _ = file.Close() }()
		r.log = file
	}

	failed, err := goTest(ctx, args, r)
	if err != nil {
		return false, err
	}
	r.endUnfinished()
	if failed && len(r.failures) == 0 {
		r.failures = append(r.failures, failure{Package: "go test", Reason: "failed and named no package"})
	}

	// When many tests fail, the reason is not chance.
	retry := len(r.failures) <= retriesLimit && !slices.Contains(args, "-race")
	var lasting, flaky []failure
	for _, f := range r.failures {
		if retry && ctx.Err() == nil && mayRetry(f) && passesAlone(ctx, f, args) {
			flaky = append(flaky, f)
		} else {
			lasting = append(lasting, f)
		}
	}

	r.print(lasting, flaky, time.Since(begin), childTime())
	return len(lasting) == 0, noteFlaky(flaky)
}

// goTest runs go test and hands its events to r. It reports whether go test failed.
func goTest(ctx context.Context, args []string, r *report) (failed bool, err error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return false, err
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	if err := r.read(out); err != nil {
		return false, err
	}
	return cmd.Wait() != nil, nil
}

// passesAlone runs a failed test by itself and reports whether it passed each time. A test
// that is skipped, or is not found, has not passed.
func passesAlone(ctx context.Context, f failure, args []string) bool {
	fmt.Printf("\nretry %s %s alone\n", f.Package, f.Test)
	alone := append(without(args), "-count=1", "-run", "^"+f.Test+"$", f.Package)
	for range attempts {
		r := newReport(io.Discard)
		failed, err := goTest(ctx, alone, r)
		if failed || err != nil || r.passed != 1 || r.failed+r.skipped > 0 {
			fmt.Printf("%s failed alone, too\n%s", f.Test, r.outputOf(f))
			return false
		}
	}
	return true
}

// without returns the flags in args that hold for a single test as well: neither
// packages nor a selection of tests.
func without(args []string) (flags []string) {
	for i := 0; i < len(args); i++ {
		name, _, joined := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		takesValue := name == "run" || name == "skip" || name == "count" || name == "timeout" || name == "tags" || name == "p" || name == "parallel"
		switch {
		case !strings.HasPrefix(args[i], "-"):
			// a package
		case name == "run" || name == "skip" || name == "count":
			if !joined {
				i++
			}
		case takesValue && !joined && i+1 < len(args):
			flags = append(flags, args[i], args[i+1])
			i++
		default:
			flags = append(flags, args[i])
		}
	}
	return flags
}

// childTime is the processor time of all children that have ended and were waited
// for. Servers that outlive their test, such as the Postgres of a test process, are
// not in it.
func childTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// noteFlaky appends the flaky tests to the file that the caller collects them in.
func noteFlaky(flaky []failure) error {
	path := os.Getenv("GUIDON_TEST_FLAKY")
	if path == "" || len(flaky) == 0 {
		return nil
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	for _, f := range flaky {
		if _, err := fmt.Fprintf(file, "%s %s\n", f.Package, f.Test); err != nil {
			_ = file.Close()
			return err
		}
	}
	return file.Close()
}
