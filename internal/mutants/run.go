package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// test is a test function and the mutants that it reaches.
type test struct {
	binary *binary
	name   string
	time   time.Duration // alone, without a mutant
	reach  map[int]bool
}

// outcome is what the tests said of one mutant.
type outcome struct {
	mutant   *mutant
	tests    []*test // that reach it
	killedBy *binary // nil means that it survived
	failed   string  // the test that failed first, if one said so
	timedOut bool
}

// runner runs test binaries.
type runner struct {
	ctx    context.Context // its end kills what runs
	dir    string          // for temporary files
	jobs   int             // processes at a time
	factor float64         // limit of a run as a multiple of its time without a mutant
	slack  time.Duration   // added to the limit
	memory int             // address space of a process in kB
	short  bool
}

// each calls fn for 0 to n-1 from as many goroutines as there are jobs. Each has a folder.
func (r *runner) each(n int, fn func(i int, tmp string)) error {
	next := make(chan int)
	var workers sync.WaitGroup
	defer workers.Wait()
	defer close(next)
	for w := range r.jobs {
		tmp := filepath.Join(r.dir, "worker"+strconv.Itoa(w))
		if err := os.MkdirAll(tmp, 0o755); err != nil {
			return err
		}
		workers.Go(func() {
			for i := range next {
				fn(i, tmp)
			}
		})
	}

	for i := range n {
		if r.ctx.Err() != nil {
			return r.ctx.Err()
		}
		next <- i
	}
	return nil
}

// findTests runs each test alone without a mutant, and notes which mutants it reaches. Tests that
// fail then are returned apart.
func (r *runner) findTests(b *binary) (tests []*test, failing []string, err error) {
	cmd := exec.Command(b.file, "-test.list", ".*")
	cmd.Dir = b.dir
	list, err := cmd.Output()
	if err != nil {
		return nil, nil, fmt.Errorf("list the tests of %s: %w", b.path, err)
	}
	for name := range strings.Lines(string(list)) {
		name = strings.TrimSpace(name)
		if strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz") || strings.HasPrefix(name, "Example") {
			tests = append(tests, &test{binary: b, name: name})
		}
	}

	var mu sync.Mutex
	err = r.each(len(tests), func(i int, tmp string) {
		t := tests[i]
		reached := filepath.Join(tmp, "reached")
		_ = os.Remove(reached)
		began := time.Now()
		result := r.run(b, []*test{t}, tmp, time.Hour, variableReached+"="+reached)
		t.time = time.Since(began)
		t.reach = readReached(reached)
		if !result.passed {
			mu.Lock()
			defer mu.Unlock()
			failing = append(failing, t.name)
		}
	})
	tests = slices.DeleteFunc(tests, func(t *test) bool { return slices.Contains(failing, t.name) })
	return tests, failing, err
}

func readReached(file string) map[int]bool {
	reached := map[int]bool{}
	content, _ := os.ReadFile(file) // absent if nothing is reached
	for line := range bytes.Lines(content) {
		if id, err := strconv.Atoi(string(bytes.TrimSpace(line))); err == nil {
			reached[id] = true
		}
	}
	return reached
}

// slow is the time from which a test runs in a second process, for mutants that survive the others.
const slow = time.Second

// try runs the tests that reach the mutant until one fails, the quick ones first.
func (r *runner) try(m *mutant, tests []*test, tmp string) outcome {
	out := outcome{mutant: m}
	type group struct {
		binary *binary
		slow   bool
	}
	groups := map[group][]*test{}
	for _, t := range tests {
		if t.reach[m.id] {
			out.tests = append(out.tests, t)
			g := group{t.binary, t.time >= slow}
			groups[g] = append(groups[g], t)
		}
	}
	ordered := slices.SortedFunc(func(yield func([]*test) bool) {
		for _, g := range groups {
			if !yield(g) {
				return
			}
		}
	}, func(a, b []*test) int { return cmp.Compare(total(a), total(b)) })

	for _, g := range ordered {
		limit := r.slack + time.Duration(r.factor*float64(total(g)))
		result := r.run(g[0].binary, g, tmp, limit, variableMutant+"="+strconv.Itoa(m.id))
		if !result.passed {
			out.killedBy, out.failed, out.timedOut = g[0].binary, result.failed, result.timedOut
			return out
		}
	}
	return out
}

func total(tests []*test) time.Duration {
	var sum time.Duration
	for _, t := range tests {
		sum += t.time
	}
	return sum
}

type result struct {
	passed   bool
	failed   string // the first test that failed
	timedOut bool
}

// run runs the tests in one process, which is killed at the first failure and at the limit.
func (r *runner) run(b *binary, tests []*test, tmp string, limit time.Duration, variable string) result {
	names := make([]string, len(tests))
	for i, t := range tests {
		names[i] = regexp.QuoteMeta(t.name)
	}
	args := []string{
		"-c", fmt.Sprintf(`ulimit -v %d 2>/dev/null; exec "$0" "$@"`, r.memory), b.file,
		"-test.run=^(" + strings.Join(names, "|") + ")$", "-test.v", "-test.failfast", "-test.paniconexit0", "-test.timeout=0",
	}
	if r.short {
		args = append(args, "-test.short")
	}
	cmd := exec.Command("/bin/sh", args...)
	cmd.Dir = b.dir
	cmd.Env = append(os.Environ(), variable, "TMPDIR="+tmp)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	output, w, err := os.Pipe()
	if err != nil {
		return result{failed: err.Error()}
	}
	defer output.Close()
	cmd.Stdout, cmd.Stderr = w, w
	err = cmd.Start()
	w.Close()
	if err != nil {
		return result{failed: err.Error()}
	}
	defer removeTestFolders(tmp)

	kill := func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // it may have ended
	failed := make(chan string, 1)
	go func() {
		failed <- firstFailure(output)
		kill()
		_, _ = io.Copy(io.Discard, output)
	}()
	exited := make(chan bool, 1) // whether all tests passed
	go func() { exited <- cmd.Wait() == nil }()

	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case passed := <-exited:
		kill() // what the tests started
		if passed {
			return result{passed: true}
		}
		return result{failed: <-failed}
	case <-timer.C:
		kill()
		<-exited
		return result{timedOut: true}
	case <-r.ctx.Done():
		kill()
		<-exited
		return result{failed: "interrupted"}
	}
}

// firstFailure reads the output of tests until one has failed, and returns its name.
func firstFailure(output io.Reader) string {
	lines := bufio.NewReader(output)
	for {
		line, err := lines.ReadString('\n')
		if name, ok := strings.CutPrefix(strings.TrimLeft(line, " "), "--- FAIL: "); ok {
			name, _, _ = strings.Cut(name, " ")
			return name
		}
		if err != nil {
			return ""
		}
	}
}

// removeTestFolders removes what t.TempDir left of a killed process.
func removeTestFolders(tmp string) {
	folders, _ := filepath.Glob(filepath.Join(tmp, "Test*"))
	for _, folder := range folders {
		_ = os.RemoveAll(folder)
	}
}
