// Command mutants measures what the tests of a package notice. It changes the package in
// hundreds of small ways, one at a time (a condition negated, a boundary moved, an operand
// or a statement left out), and runs the tests against each: a change that no test notices is a
// survivor, and names a promise that nothing holds.
//
// All mutants of a package are compiled into one test binary, each as a condition on a number that the
// process reads from a variable. The go command gets the changed files as an overlay, so the
// tree stays as it is. A first run of each test records which mutants it reaches; a mutant is
// tried only with the tests that reach it, the quick ones first, and until the first failure.
//
//	make mutants PKG=core/flags/eval
//	make mutants PKG=core/match ARGS='-sample 0 -only date.go'
//
// Results are of the tests at hand: a mutant that only a story of another package notices
// survives, unless -also names that package. Flaky tests flatter.
package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

type options struct {
	sample  int
	seed    int64
	also    string
	only    string
	exclude string
	verbose bool
	least   float64
	runner  runner
}

func main() {
	var o options
	flag.IntVar(&o.sample, "sample", 80, "mutants to try in each package; 0 tries all")
	flag.Int64Var(&o.seed, "seed", 1, "seed of the sample")
	flag.StringVar(&o.also, "also", "", "packages whose tests count too, separated by commas")
	flag.StringVar(&o.only, "only", "", "regular expression: only mutants whose place or text matches (as in update.go:64)")
	flag.StringVar(&o.exclude, "exclude", "", "regular expression: no mutants whose place or text matches")
	flag.Float64Var(&o.least, "least", 0, "fail if the tests of a package kill less than this share of its mutants, in percent")
	flag.BoolVar(&o.verbose, "v", false, "print each mutant as it is tried")
	flag.IntVar(&o.runner.jobs, "jobs", 2, "processes at a time")
	flag.Float64Var(&o.runner.factor, "factor", 5, "time limit of a mutant, as a multiple of the time without it")
	flag.DurationVar(&o.runner.slack, "slack", 10*time.Second, "added to the time limit")
	flag.IntVar(&o.runner.memory, "memory", 3<<20, "address space of a process in kB")
	flag.BoolVar(&o.runner.short, "short", true, "run the tests with -short")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: mutants [flags] package ...")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	var stop func()
	o.runner.ctx, stop = signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(os.Stdout, o, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, o options, packages []string) error {
	var scores []*score
	for _, name := range packages {
		s, err := measure(w, o, localPattern(name))
		if err != nil {
			return err
		}
		scores = append(scores, s)
	}
	printTable(w, scores)

	for _, s := range scores {
		if share := s.killedShare(); share < o.least {
			return fmt.Errorf("the tests of %s kill %.0f %% of its mutants, less than %.0f %%", s.path, share, o.least)
		}
	}
	return nil
}

// localPattern lets packages be named by their folder alone.
func localPattern(name string) string {
	if info, err := os.Stat(name); err == nil && info.IsDir() && !filepath.IsAbs(name) {
		return "./" + filepath.ToSlash(filepath.Clean(name))
	}
	return name
}

// score is the result of one package.
type score struct {
	path       string
	mutants    int // without equivalents
	equivalent int
	reached    int
	outcomes   []outcome
}

// killedShare is the share of the mutants that were tried and killed, in percent.
func (s *score) killedShare() float64 {
	if len(s.outcomes) == 0 {
		return 0
	}
	killed := 0
	for _, o := range s.outcomes {
		if o.killedBy != nil {
			killed++
		}
	}
	return 100 * float64(killed) / float64(len(s.outcomes))
}

// measure tries a sample of the package's mutants.
func measure(w io.Writer, o options, pattern string) (*score, error) {
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.Chmod(dir, 0o755); err != nil { // the server of test databases has another account
		return nil, err
	}
	r := o.runner
	r.dir = dir

	// Compile the mutants into the tests.
	t, err := mutatePackage(pattern, dir)
	if err != nil {
		return nil, err
	}
	equivalents, err := parseEquivalents(recorded, t.path)
	if err != nil {
		return nil, err
	}
	mutants, stale := withoutEquivalents(t.mutants, equivalents)
	for _, key := range stale {
		fmt.Fprintf(w, "%s: equivalent.txt names a mutant that is not there: %s\n", t.path, key)
	}
	patterns := []string{pattern}
	for _, name := range strings.FieldsFunc(o.also, func(r rune) bool { return r == ',' || r == ' ' }) {
		patterns = append(patterns, localPattern(name))
	}

	// Find which tests reach which mutants.
	var tests []*test
	for i, p := range patterns {
		b, err := t.buildTests(p, filepath.Join(dir, fmt.Sprintf("tests%d", i)))
		if err != nil {
			return nil, err
		}
		began := time.Now()
		found, failing, err := r.findTests(b)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(w, "%s: %d tests in %s\n", b.path, len(found), time.Since(began).Round(100*time.Millisecond))
		if len(failing) > 0 {
			fmt.Fprintf(w, "%s: left out, since they fail without a mutant: %s\n", b.path, strings.Join(failing, ", "))
		}
		if o.verbose {
			for _, t := range found {
				fmt.Fprintf(w, "%8s  %s reaches %d\n", t.time.Round(10*time.Millisecond), t.name, len(t.reach))
			}
		}
		tests = append(tests, found...)
	}
	s := &score{path: t.path, mutants: len(mutants), equivalent: len(t.mutants) - len(mutants)}
	reached := reachedBy(mutants, tests)
	s.reached = len(reached)

	// Try a sample.
	chosen, err := o.choose(reached)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(w, "%s: %d mutants, %d reached, trying %d (seed %d)\n", t.path, s.mutants, s.reached, len(chosen), o.seed)
	s.outcomes = make([]outcome, len(chosen))
	err = r.each(len(chosen), func(i int, tmp string) {
		s.outcomes[i] = r.try(chosen[i], tests, tmp)
		if o.verbose {
			fmt.Fprintf(w, "%-8s %s %s [%s]\n", s.outcomes[i].word(), chosen[i].place(), chosen[i].key(), s.outcomes[i].failed)
		}
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(s.outcomes, func(a, b outcome) int { return cmp.Compare(a.mutant.id, b.mutant.id) })
	s.printMutants(w)
	return s, nil
}

func reachedBy(mutants []*mutant, tests []*test) []*mutant {
	ids := map[int]bool{}
	for _, t := range tests {
		maps.Copy(ids, t.reach)
	}
	return slices.DeleteFunc(slices.Clone(mutants), func(m *mutant) bool { return !ids[m.id] })
}

// choose takes a sample that stays the same, for one seed, when other mutants come and go.
func (o *options) choose(mutants []*mutant) ([]*mutant, error) {
	only, err := regexp.Compile(o.only)
	if err != nil {
		return nil, err
	}
	exclude, err := regexp.Compile(o.exclude)
	if err != nil {
		return nil, err
	}
	var chosen []*mutant
	for _, m := range mutants {
		text := m.place() + " " + m.key()
		if only.MatchString(text) && (o.exclude == "" || !exclude.MatchString(text)) {
			chosen = append(chosen, m)
		}
	}
	if o.sample == 0 || o.sample >= len(chosen) {
		return chosen, nil
	}

	rank := map[*mutant]string{}
	for _, m := range chosen {
		sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %s", o.seed, m.file, m.key()))
		rank[m] = string(sum[:])
	}
	slices.SortFunc(chosen, func(a, b *mutant) int { return cmp.Compare(rank[a], rank[b]) })
	return chosen[:o.sample], nil
}

func (o *outcome) word() string {
	switch {
	case o.killedBy == nil:
		return "survived"
	case o.timedOut:
		return "timeout"
	}
	return "killed"
}

// printMutants lists the survivors, and apart from them what only the time limit killed.
func (s *score) printMutants(w io.Writer) {
	for _, list := range []struct{ word, title string }{
		{"survived", "survived"},
		{"timeout", "killed by the time limit"},
	} {
		title := "\n" + s.path + ": " + list.title + "\n"
		for i := range s.outcomes {
			o := &s.outcomes[i]
			if o.word() != list.word {
				continue
			}
			fmt.Fprintf(w, "%s  %s\n      %s\n      reached by %s\n", title, o.mutant.place(), o.mutant.key(), testNames(o.tests))
			title = ""
		}
	}
}

func testNames(tests []*test) string {
	const most = 3
	var names []string
	for _, t := range tests[:min(most, len(tests))] {
		names = append(names, t.name)
	}
	if more := len(tests) - most; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

func printTable(w io.Writer, scores []*score) {
	width := len("package")
	for _, s := range scores {
		width = max(width, len(s.path))
	}
	const row = "%-*s  %7v  %7v  %5v  %12v  %10v  %12v  %10v\n"
	fmt.Fprintf(w, "\n"+row, width, "package", "mutants", "reached", "run", "killed", "by a limit", "survived", "equivalent")
	for _, s := range scores {
		var killed, timedOut, elsewhere int
		for _, o := range s.outcomes {
			if o.killedBy != nil {
				killed++
				if o.killedBy.path != s.path {
					elsewhere++
				}
			}
			if o.timedOut {
				timedOut++
			}
		}
		run := len(s.outcomes)
		fmt.Fprintf(w, row, width, s.path, s.mutants, s.reached, run, share(killed, run), timedOut, share(run-killed, run), s.equivalent)
		if elsewhere > 0 {
			fmt.Fprintf(w, "%-*s  %d of these killed by tests of other packages alone\n", width, "", elsewhere)
		}
	}
}

func share(n, of int) string {
	if of == 0 {
		return "0"
	}
	return fmt.Sprintf("%d (%.0f %%)", n, 100*float64(n)/float64(of))
}
